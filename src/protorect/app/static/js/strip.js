// The strip at the bottom: what the last act changed, with Show and Undo.

import { showChanges } from './actions.js';
import { connection, drop, last, undo, unsaved } from './acts.js';
import { $, count, fill, h, icon, perFrame, plural, say, shown } from './dom.js';
import { on, store } from './store.js';
import { thumbnail } from './tile.js';

const SHOWN_FLOWS = 3;
const SLOW = 1500; // milliseconds until the strip says that it still works
let slow = null; // a timer, then true

const changes = n => `${plural(n, 'picture')} changed`;
const flow = ({ from, to, count: n }, arrow) => `${count(n)} ${shown(from)} ${arrow} ${shown(to)}`;

function flowButton({ from, to, count: n }) {
	const parts = [h('b', count(n)), ` ${shown(from)} `, icon('arrow'), h('span.sr', 'to'), ` ${shown(to)}`];
	return h('button.flow', { onclick: showChanges }, parts);
}

/** What a screen reader says: one sentence per act, when the server has answered. */
function spoken() {
	if (connection.lost && unsaved()) return `${plural(unsaved(), 'act')} not saved yet`;
	if (last.problem) return last.problem.text;
	if (last.working || !last.count) return last.working ? '' : last.text;
	return `${last.text}. ${changes(last.count)}: ${last.summary.map(one => flow(one, 'to')).join(', ')}`;
}

function sentence() {
	if (connection.lost && unsaved()) return 'Not saved yet. It will be sent again when the server answers.';
	if (last.problem) return last.problem.text;
	if (!last.text) return 'What each of your labels changes will be shown here.';
	if (last.working) return slow === true ? 'Still working' : '';
	return last.count ? null : 'No other picture changed.';
}

function drawBody() {
	const text = sentence(),
		{ count: n, summary } = last,
		more = summary.length - SHOWN_FLOWS;
	const flows = () => [summary.slice(0, SHOWN_FLOWS).map(flowButton), more > 0 && h('span.desk', `and ${more} more`)];
	fill($('#strip-sum'), h('b', text ?? `${changes(n)}:`), text === null && flows());
	const rest = n - (summary[0]?.count ?? 0);
	const brief = text === null ? flow(summary[0], '→') + (rest ? `, ${count(rest)} more` : '') : '';
	say({ 'strip-did': last.text || 'Nothing labeled yet', 'strip-brief': brief });
}

function drawButtons() {
	const { lost } = connection,
		{ problem } = last,
		calm = !lost && !problem;
	const buttons = {
		again: !lost && problem?.again,
		drop: lost ? unsaved() : problem?.again,
		close: !lost && problem && !problem.again,
		show: calm && last.count,
		undo: calm && store.state?.undo,
	};
	for (const [name, is] of Object.entries(buttons)) $(`#strip-${name}`).hidden = !is;
}

function drawStrip() {
	const strip = $('#strip'),
		{ picture } = last;
	strip.classList.toggle('lit', last.count > 0 && !last.working);
	strip.classList.toggle('busy', last.working && !connection.lost);
	strip.classList.toggle('bad', Boolean(last.problem));
	fill($('#strip-picture'), picture && !picture.error && thumbnail(picture));
	drawBody();
	drawButtons();
	const status = $('[role=status]', strip),
		text = spoken();
	if (text && status.textContent !== text) status.textContent = text;
}

function close() {
	last.problem = null;
	drawStrip();
}

const clicks = { again: () => last.problem.again(), drop, close, show: showChanges, undo };
for (const [name, run] of Object.entries(clicks)) $(`#strip-${name}`).addEventListener('click', run);
const draw = perFrame(drawStrip);
on('acts connection state', draw);
on('acts', () => {
	if (!last.working) {
		clearTimeout(slow);
		slow = null;
	} else
		slow ??= setTimeout(() => {
			slow = true;
			draw();
		}, SLOW);
});
