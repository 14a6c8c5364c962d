// The keyboard: letters are commands, digits are classes, in every view.

import * as actions from './actions.js';
import { redo, undo } from './acts.js';
import { openExport, openHelp } from './dialogs.js';
import { $ } from './dom.js';
import { closeDetails, detailsOpen, toggleDetails } from './drawer.js';
import { Grid, gridInFocus, setZoom, zoom } from './grid.js';
import { current, go } from './router.js';
import { keysOn } from './settings.js';
import { store } from './store.js';

const larger = () => setZoom(zoom() + 1);
const LETTERS = {
	a: () => actions.likeliest(0),
	s: () => actions.likeliest(1),
	d: () => actions.likeliest(2),
	c: actions.chooseClass,
	r: actions.repeat,
	n: actions.newClass,
	x: actions.unknown,
	u: actions.unsure,
	g: () => go('useful'),
	j: () => actions.step(1),
	k: () => actions.step(-1),
	v: toggleDetails,
	f: actions.findSimilar,
	w: actions.showChanges,
	z: () => {
		if (store.state.undo) void undo();
	},
	e: openExport,
	'+': larger,
	'=': larger,
	'-': () => setZoom(zoom() - 1),
	'/': () => $('#search').focus(),
	'?': openHelp,
};
const PARTS = ['header', '#classes', '#pictures', '#details', '#strip'];

const typing = element =>
	element.matches('input:not([type=range], [type=checkbox], [type=radio]), textarea, select') ||
	element.isContentEditable;

/** The letter that is printed on the key, on layouts without Latin letters the one of its place. */
function letterOf(event) {
	const key = event.key.toLowerCase();
	if (/^[a-z]$/.test(key) || !/^Key[A-Z]$/.test(event.code)) return key;
	return event.code.at(-1).toLowerCase();
}
const digitOf = event => (event.shiftKey ? null : (/^(?:Digit|Numpad)(\d)$/.exec(event.code)?.[1] ?? null));

function moveInGrid(event) {
	const grid = Grid.current;
	if (!grid?.ids.length) return false;
	const pageRows = Math.max(1, Math.floor(grid.element.clientHeight / grid.step)) * grid.columns;
	const steps = {
		ArrowLeft: -1,
		ArrowRight: 1,
		ArrowUp: -grid.columns,
		ArrowDown: grid.columns,
		Home: -grid.at,
		End: grid.ids.length - 1 - grid.at,
		PageUp: -pageRows,
		PageDown: pageRows,
	};
	if (!(event.key in steps)) return false;
	const to = Math.max(0, Math.min(grid.ids.length - 1, grid.at + steps[event.key]));
	if (event.shiftKey) grid.extend(to);
	else {
		grid.anchor = to;
		grid.focus(to);
	}
	return true;
}

function escape() {
	if (detailsOpen()) closeDetails();
	else if (Grid.current?.selected.size) Grid.current.clear();
	else Grid.refocus();
}

function nextPart(backwards) {
	const parts = PARTS.map(selector => $(selector)).filter(part => part && !part.hidden && part.offsetParent !== null);
	const at = parts.findIndex(part => part.contains(document.activeElement));
	const part = parts[(at + (backwards ? parts.length - 1 : 1)) % parts.length];
	$('[tabindex="0"], a[aria-current], a, button, input', part)?.focus();
}

function withControl(event) {
	const key = event.key.toLowerCase();
	if (key === 'z') return event.shiftKey ? redo : undo;
	if (key === 'y') return redo;
	if (key === 'a' && Grid.current) return () => Grid.current.select(Grid.current.page());
	return null;
}

function command(event) {
	const onButton =
		document.activeElement.matches('button, a, summary, [role=radio]') &&
		!document.activeElement.closest('.card, .check');
	if (event.key === 'Escape') return escape;
	if (event.key === 'F6') return () => nextPart(event.shiftKey);
	if (event.key === 'Enter' || event.key === ' ') {
		if (onButton) return null;
		if (event.key === ' ' && gridInFocus())
			return event.shiftKey ? () => Grid.current.extend(Grid.current.at) : () => Grid.current.toggle(Grid.current.at);
		return current.keys[event.key] ?? null;
	}
	if (current.keys[event.key]) return current.keys[event.key];
	if (event.key === 'Backspace') return actions.takeBack;
	if (!keysOn()) return null;
	const letter = letterOf(event),
		digit = digitOf(event);
	if (current.keys.letter && /^[\p{L}\p{N}]$/u.test(event.key) && current.keys.letter()) return () => 'type';
	if (digit !== null) return () => actions.withKey(digit);
	if (letter === 'z' && event.shiftKey) return redo;
	if (current.keys[letter]) return current.keys[letter];
	return LETTERS[letter] ?? null;
}

// After a click on a button focus returns to the pictures; keys that press a button stay on it.
addEventListener('click', ({ detail, target }) => {
	if (detail && target.closest('.bar, .acts, .thumbbar, .strip')) Grid.refocus();
});
addEventListener('keydown', event => {
	if (event.defaultPrevented || event.isComposing || !store.state || $('dialog[open]')) return;
	const active = document.activeElement ?? document.body;
	if (typing(active)) {
		if (event.key === 'Escape') {
			active.blur();
			Grid.refocus();
		}
		return;
	}
	let run = null;
	if ((event.ctrlKey || event.metaKey) && !event.altKey) run = withControl(event);
	else if (!event.ctrlKey && !event.altKey && !event.metaKey) {
		if (!active.matches('[role=radio], input') && !active.closest('#classes, header') && moveInGrid(event)) {
			event.preventDefault();
			return;
		}
		if (event.repeat && !event.key.startsWith('Arrow')) return; // held keys repeat moves only
		run = command(event);
	}
	if (!run || run() === 'type') return;
	event.preventDefault();
});
