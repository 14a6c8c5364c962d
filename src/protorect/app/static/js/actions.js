// What buttons and keys do with the selected pictures, or with the one in focus.

import * as acts from './acts.js';
import { connection, last } from './acts.js';
import { Grid } from './grid.js';
import { choose } from './palette.js';
import { current, go } from './router.js';
import { classWithKey, store } from './store.js';

/** The ids that an act applies to in the present view. */
export const targets = () => current.targets?.() ?? Grid.current?.targets() ?? [];

function perform(act) {
	if (connection.lost) return; // acts pause until the server answers
	const ids = targets();
	if (!ids.length) return;
	act(ids);
	if (current.advance) current.advance();
	else Grid.current?.advance();
}

const labelAs = name => perform(ids => acts.label(ids, name));
export const unknown = () => perform(acts.markUnknown);
export const unsure = () => perform(acts.markUnsure);
export const takeBack = () => perform(acts.unlabel);
export const repeat = () => store.lastClass && labelAs(store.lastClass);
export const withKey = key => {
	const one = classWithKey(key);
	if (one) labelAs(one.name);
};

/** Give each picture its own first, second or third likeliest class. */
export function likeliest(rank) {
	perform(ids => {
		const labels = {};
		for (const id of ids) {
			const name = store.pictures.get(id)?.top?.[rank]?.label;
			if (name) labels[id] = name;
		}
		if (!Object.keys(labels).length) return;
		if (rank === 0) void acts.accept(Object.keys(labels).map(Number));
		else void acts.labelEach(labels);
	});
}

function chooseBy(onlyNew) {
	const ids = targets();
	if (!ids.length || connection.lost) return;
	choose({ pictures: ids.length, onlyNew, chosen: name => perform(now => acts.assign(now, name)) });
}
export const chooseClass = () => chooseBy(false);
export const newClass = () => chooseBy(true);

/** Accept what is proposed on the page, without the selected and the just changed pictures. */
export function restOfPage() {
	const grid = Grid.current;
	return (grid?.page() ?? []).filter(id => {
		const picture = store.pictures.get(id);
		return (
			picture?.status === 'proposed' &&
			!picture.error &&
			picture.label !== null &&
			!grid.selected.has(id) &&
			!store.changed.has(id) &&
			(grid.labelled === undefined || picture.label === grid.labelled)
		);
	});
}
export function acceptRest() {
	if (connection.lost) return;
	const ids = restOfPage();
	const grid = Grid.current;
	const answered = ids.length ? acts.accept(ids) : null;
	const isHere = () => Grid.current === grid && !grid.selected.size;
	const turn = async () => {
		if (!isHere() || grid.turnPage() || !answered) return;
		await answered; // the end of the list: what has joined it, or that nothing is left
		if (isHere() && grid.labelled !== undefined) go(current.kind, current.parameters);
	};
	setTimeout(turn, answered ? 200 : 0);
}

export function findSimilar() {
	const [id] = targets();
	if (id !== undefined) go('similar', { id });
}
export function showChanges() {
	if (last.count) go('changes', { act: last.act });
}

/** Go to the next or previous entry of the class list. */
export function step(direction) {
	const entries = [...document.querySelectorAll('.nav a.cls')];
	const at = entries.findIndex(entry => entry.hasAttribute('aria-current'));
	const next = entries[(at + direction + entries.length) % entries.length];
	if (next) location.hash = next.getAttribute('href');
}
