// Banners above the view: pictures that are being read, and a server that does not answer.

import { connection, unsaved } from './acts.js';
import { $, count, duration, plural, setVariables } from './dom.js';
import { on, store } from './store.js';

let hidden = false; // whether the person hid the progress

function drawReading({ done, total, per_second: rate, seconds_left: left }) {
	const read = `${count(done)} of ${count(total)}`;
	$('#progress').textContent = `Reading ${read}`;
	$('#reading-count').textContent = `Reading pictures: ${read}`;
	const speed = rate ? `${count(Math.round(rate))} per second, about ${duration(left)} left` : '';
	$('#reading-speed').textContent = speed;
	const meter = $('#reading .meter');
	meter.setAttribute('aria-valuemax', total);
	meter.setAttribute('aria-valuenow', done);
	setVariables(meter.firstChild, { '--w': `${(100 * done) / Math.max(1, total)}%` });
}

function drawLost() {
	const time = connection.lost.toLocaleTimeString();
	$('#lost-since').textContent = `No answer from the server since ${time}. Trying again in ${connection.next} s.`;
	const waiting = unsaved();
	const kept = ` ${plural(waiting, 'act')} ${waiting === 1 ? 'is' : 'are'} kept on this page and will be sent again.`;
	$('#lost-saved').textContent = `Every act up to number ${count(store.state.act)} is saved.${waiting ? kept : ''}`;
	$('#lost-command').textContent = store.state.project.command;
}

function drawBanners() {
	const progress = store.state?.progress;
	$('#reading').hidden = !progress || hidden || connection.lost;
	$('#progress').hidden = !progress || !hidden; // a line in the header, instead of the banner
	$('#lost').hidden = !connection.lost;
	if (progress) drawReading(progress);
	if (connection.lost) drawLost();
}

export function startBanners() {
	$('#hide-reading').addEventListener('click', () => {
		hidden = true;
		drawBanners();
	});
	$('#try-now').addEventListener('click', () => connection.retry?.());
}

on('connection', drawBanners);
on('state', drawBanners);
