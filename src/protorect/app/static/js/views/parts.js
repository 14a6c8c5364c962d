// The parts of a view with a grid: title, counts, order, acts on the selection, what an empty list says.

import { connection } from '../acts.js';
import { chooseButton, unknownButton, unsureButton } from '../act_buttons.js';
import * as actions from '../actions.js';
import { read } from '../api.js';
import { $, button, count, fill, h, icon, iconButton, perFrame, percent } from '../dom.js';
import { openDetails } from '../drawer.js';
import { Grid, setZoom, zoom } from '../grid.js';
import { current, go } from '../router.js';
import { emit, on, store } from '../store.js';

const PAUSED = 'Labeling is paused until the server answers. You can still look at pictures.';

export const idsOf = async parameters => (await read('pictures', { ...parameters, fields: 'id' })).ids;

export function zoomSlider() {
	const range = { type: 'range', min: 1, max: 5, value: zoom() + 1, 'aria-label': 'Size of the pictures' };
	const oninput = event => setZoom(event.target.value - 1);
	return h('div.zoom.desk', icon('all'), h('input', { ...range, oninput }));
}

export function choice(name, options, chosen, pick) {
	const radio = ([value, text]) =>
		h('button', { role: 'radio', 'aria-checked': String(value === chosen), onclick: () => pick(value) }, text);
	return h('div.seg', { role: 'radiogroup', 'aria-label': name }, options.map(radio));
}

/** The two ways to look at the unsure or the unknown pictures. */
export const modes = (kind, first, mode) =>
	choice('View', [first, ['grid', 'Grid']], mode, value => go(kind, value === 'grid' ? { mode: value } : {}));

/** The acts on the selection; without one, a hint and what Enter does. */
function actsRow(hint) {
	const role = { role: 'toolbar', 'aria-label': 'Acts on the selected pictures' };
	const row = h('div.acts.desk', role),
		phone = h('div.thumbbar.phone', role);
	const draw = () => {
		const grid = Grid.current;
		if (!grid || !row.isConnected) return;
		const chosen = grid.selected.size,
			rest = actions.restOfPage().length,
			paused = connection.lost;
		const off = paused ? { 'aria-disabled': 'true' } : {};
		const acceptText = chosen ? `Accept the other ${count(rest)}` : `Accept ${count(rest)} on this page`;
		const accept = (text, given) => rest && button(text, { onclick: actions.acceptRest, ...given });
		const focused = row.contains(document.activeElement);
		fill(
			row,
			chosen ? selectionActs(grid, off) : h('span.hint', paused ? PAUSED : hint),
			accept(acceptText, { key: 'Enter', kind: paused ? 'push' : 'first push', ...off }),
		);
		fill(
			phone,
			chosen && button('Class…', { onclick: actions.chooseClass }),
			chosen && button('Unknown', { onclick: actions.unknown }),
			accept(chosen ? `Accept other ${count(rest)}` : acceptText, { kind: 'first' }),
		);
		if (focused) Grid.refocus(); // its button is gone
	};
	return { row, phone, draw };
}

function selectionActs(grid, off) {
	const ids = [...grid.selected],
		inView = new Set(grid.page());
	const hidden = ids.filter(id => !inView.has(id)).length;
	const only = ids.length === 1 ? store.pictures.get(ids[0]) : null;
	const likely = (rank, key, kind) =>
		only?.top?.[rank] &&
		button([only.top[rank].label, ' ', h('span.pct-in', percent(only.top[rank].probability))], {
			key,
			kind,
			onclick: () => actions.likeliest(rank),
			...off,
		});
	return [
		h('span.what', `${count(ids.length)} selected${hidden ? `, ${count(hidden)} not in view` : ''}`),
		iconButton('cross', 'Clear the selection (Esc)', () => grid.clear()),
		likely(1, 'S'),
		likely(2, 'D', 'wide'),
		chooseButton(off),
		unknownButton({ kind: 'wide', ...off }),
		unsureButton({ kind: 'wide', ...off }),
	];
}

/** A view: title, counts and controls in its first row, then its body. */
export function frame({ name, title, menu, counts, controls }, ...body) {
	const bar = h('div.bar', h('h1', title), menu, h('p.counts.desk', counts), h('span.push.desk'), controls);
	return h('section.view', { 'aria-label': name ?? title }, bar, body);
}

/** The parts of a view: title, counts, controls, acts, and a grid or what stands in its place. */
export function gridView({ title, counts, controls = [], sections, labelled, hint, blank, menu, keys }) {
	const grid = new Grid({ name: title, sections, labelled, onopen: openDetails, onpick: () => emit('pick') });
	const acts = actsRow(hint);
	const number = h('span', counts());
	const element = frame(
		{ title, menu, counts: number, controls: [controls, grid.ids.length > 0 && zoomSlider()] },
		grid.ids.length ? [acts.row, grid.element, acts.phone] : blank,
	);
	grid.onpage = acts.draw;
	return {
		element,
		grid,
		title,
		refresh: () => {
			number.textContent = counts();
			acts.draw();
		},
		keys: { Enter: actions.acceptRest, ...keys },
		focus: () => (grid.ids.length ? grid.focus(0) : $('.blank .btn', element)?.focus()),
	};
}

export function blank({ mark = 'check', title, text, buttons = [] }) {
	return h(
		'div.blank',
		h('span.round', icon(mark)),
		h('h2', title),
		text && h('p.quiet', text),
		h('p.row.center', buttons),
	);
}

on(
	'pick pictures changed connection state',
	perFrame(() => Grid.current && current.refresh?.()),
);
