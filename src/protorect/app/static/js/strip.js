// The strip at the bottom: what the last act changed, with Show and Undo.

import { connection, drop, last, undo, unsaved } from './acts.js';
import { $, button, count, fill, h, icon, plural, shown } from './dom.js';
import { go } from './router.js';
import { on, store } from './store.js';
import { thumbnail } from './tile.js';

const SHOWN_FLOWS = 3;
const SLOW = 1500; // milliseconds until the strip says that it still works
let slow = null;

const changes = n => `${plural(n, 'picture')} changed`;

function flows() {
	return last.summary
		.slice(0, SHOWN_FLOWS)
		.map(({ from, to, count: n }) =>
			h(
				'button.flow',
				{ onclick: () => go('changes', { act: last.act }) },
				h('b', count(n)),
				` ${shown(from)} `,
				icon('arrow'),
				h('span.sr', 'to'),
				` ${shown(to)}`,
			),
		);
}

function spoken() {
	if (connection.lost && unsaved()) return `${plural(unsaved(), 'act')} not saved yet`;
	if (last.problem) return last.problem.text;
	if (last.working) return '';
	if (!last.count) return last.text;
	return `${last.text}. ${changes(last.count)}: ${last.summary.map(({ from, to, count: n }) => `${n} ${shown(from)} to ${shown(to)}`).join(', ')}`;
}

function sentence() {
	if (connection.lost && unsaved()) return 'Not saved yet. It will be sent again when the server answers.';
	if (last.problem) return last.problem.text;
	if (!last.text) return 'What each of your labels changes will be shown here.';
	if (last.working) return slow === true ? 'Still working' : '';
	return last.count ? null : 'No other picture changed.';
}

function body() {
	const text = sentence();
	if (text !== null) return h('div.sum2', h('b', text));
	const more = last.summary.length - SHOWN_FLOWS;
	return h('div.sum2', h('b', `${changes(last.count)}:`), flows(), more > 0 && h('span.desk', `and ${more} more`));
}

function phoneText() {
	if (!last.count || last.working) return null;
	const [{ from, to, count: n }] = last.summary;
	const rest = last.count - n;
	return h(
		'p.phone',
		{ 'aria-hidden': 'true' },
		`${count(n)} ${shown(from)} → ${shown(to)}${rest ? `, ${count(rest)} more` : ''}`,
	);
}

function buttons() {
	if (connection.lost) return unsaved() ? [button('Drop this act', { onclick: drop })] : [];
	if (last.problem) {
		return [
			last.problem.again && button('Try again', { onclick: last.problem.again }),
			button(last.problem.again ? 'Drop this act' : 'Close', {
				onclick: () => {
					last.problem = null;
					drawStrip();
				},
			}),
		];
	}
	const show = last.count
		? button('Show', { key: 'W', kind: 'changes', onclick: () => go('changes', { act: last.act }) })
		: null;
	const back = store.state?.undo ? button([icon('undo'), 'Undo'], { key: 'Z', onclick: undo }) : null;
	return [show, back];
}

function drawStrip() {
	const strip = $('#strip');
	const picture = last.thumbnail !== null ? store.pictures.get(last.thumbnail) : null;
	strip.classList.toggle('lit', last.count > 0 && !last.working);
	strip.classList.toggle('busy', last.working && !connection.lost);
	strip.classList.toggle('bad', Boolean(last.problem));
	fill(
		$('.now-shown', strip),
		picture && !picture.error && thumbnail(picture),
		h('div.body', h('p.did', last.text || 'Nothing labeled yet'), body(), phoneText()),
		h('div.end', buttons()),
	);
	const status = strip.querySelector('[role=status]');
	const text = spoken();
	if (text && status.textContent !== text) status.textContent = text;
}

on('acts', () => {
	if (last.working && slow === null)
		slow = setTimeout(() => {
			slow = true;
			drawStrip();
		}, SLOW);
	if (!last.working) {
		clearTimeout(slow);
		slow = null;
	}
	drawStrip();
});
on('connection', drawStrip);
on('state', drawStrip);
