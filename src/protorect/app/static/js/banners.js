// Banners above the view: pictures that are being read, and a server that does not answer.

import { connection, unsaved } from './acts.js';
import { $, button, count, duration, h, icon, plural } from './dom.js';
import { on, store } from './store.js';

let hidden = false; // whether the person hid the progress

function progressBanner({ done, total, per_second: rate, seconds_left: left }) {
	const speed = rate ? `${count(Math.round(rate))} per second, about ${duration(left)} left` : '';
	return h(
		'div.banner',
		{ role: 'region', 'aria-label': 'Reading pictures' },
		icon('work'),
		h(
			'div',
			h('b', `Reading pictures: ${count(done)} of ${count(total)}`),
			' ',
			h('span.quiet.nowrap', speed),
			h(
				'p.quiet',
				'You can label now. Pictures join their class as they are read; the page you look at does not move.',
			),
		),
		button('Hide', {
			kind: 'plain',
			onclick: () => {
				hidden = true;
				drawBanner();
			},
		}),
		h(
			'div.meter',
			{
				role: 'progressbar',
				'aria-label': 'Pictures read',
				'aria-valuemin': 0,
				'aria-valuemax': total,
				'aria-valuenow': done,
			},
			h('i', { vars: { '--w': `${(100 * done) / Math.max(1, total)}%` } }),
		),
	);
}

function lostBanner() {
	const waiting = unsaved();
	return h(
		'div.banner.bad',
		{ role: 'alert' },
		icon('warn'),
		h(
			'div',
			h(
				'b',
				`No answer from the server since ${connection.lost.toLocaleTimeString()}. Trying again in ${connection.next} s.`,
			),
			h(
				'p',
				`Every act up to number ${count(store.state.act)} is saved.${waiting ? ` ${plural(waiting, 'act')} ${waiting === 1 ? 'is' : 'are'} kept on this page and will be sent again.` : ''}`,
			),
			store.state.project?.command
				? h('p', 'If the command was stopped, start it again: ', h('code', store.state.project.command))
				: null,
		),
		button('Try now', { onclick: () => connection.retry?.() }),
	);
}

export function drawBanner() {
	const place = $('#banner');
	if (connection.lost) place.replaceChildren(lostBanner());
	else if (store.state?.progress && !hidden) place.replaceChildren(progressBanner(store.state.progress));
	else place.replaceChildren();
}

on('connection', drawBanner);
on('state', drawBanner);
