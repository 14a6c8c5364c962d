// Banners above the view: pictures that are being read, and a server that does not answer.

import { connection, unsaved } from './acts.js';
import { $, count, duration, plural, say, setVariables } from './dom.js';
import { on, store } from './store.js';

let hidden = false; // whether the person hid the progress

function drawReading({ done, total, per_second: rate, seconds_left: left }) {
	const read = `${count(done)} of ${count(total)}`;
	say({
		progress: `Reading ${read}`,
		'reading-count': `Reading pictures: ${read}`,
		'reading-speed': rate ? `${count(Math.round(rate))} per second, about ${duration(left)} left` : '',
	});
	const meter = $('#reading .meter');
	meter.setAttribute('aria-valuemax', total);
	meter.setAttribute('aria-valuenow', done);
	setVariables(meter.firstChild, { w: `${(100 * done) / Math.max(1, total)}%` });
}

function drawLost() {
	const { lost, next } = connection,
		waiting = unsaved();
	const kept = ` ${plural(waiting, 'act')} ${waiting === 1 ? 'is' : 'are'} kept on this page and will be sent again.`;
	say({
		'lost-since': `No answer from the server since ${lost.toLocaleTimeString()}. Trying again in ${next} s.`,
		'lost-saved': `Every act up to number ${count(store.state.act)} is saved.${waiting ? kept : ''}`,
		'lost-command': store.state.project.command,
	});
}

function drawBanners() {
	const progress = store.state?.progress;
	$('#reading').hidden = !progress || hidden || connection.lost;
	$('#progress').hidden = !progress || !hidden; // a line in the header, instead of the banner
	$('#lost').hidden = !connection.lost;
	if (progress) drawReading(progress);
	if (connection.lost) drawLost();
}

$('#hide-reading').addEventListener('click', () => {
	hidden = true;
	drawBanners();
});
$('#try-now').addEventListener('click', () => connection.retry?.());

on('connection state', drawBanners);
