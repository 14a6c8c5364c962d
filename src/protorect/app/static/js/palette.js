// Choosing a class by typing a part of its name. Nothing happens before Enter.

import { $, cap, count, h, icon, nameField, plural } from './dom.js';
import { checkedOf, classNamed, store } from './store.js';
import { classPicture } from './tile.js';

/** Classes whose name matches: it begins so, a word begins so, anywhere; ties by last use. */
export function matches(text, classes = store.state.classes) {
	const wanted = text.trim().toLowerCase();
	const rank = name => {
		const lower = name.toLowerCase();
		if (lower.startsWith(wanted)) return 0;
		if (lower.split(/[\s\-_/]+/).some(word => word.startsWith(wanted))) return 1;
		return lower.includes(wanted) ? 2 : 3;
	};
	const used = name => {
		const at = store.recent.indexOf(name);
		return at < 0 ? Infinity : at;
	};
	return classes
		.map(one => ({ one, rank: rank(one.name) }))
		.filter(({ rank: r }) => r < 3)
		.sort((a, b) => a.rank - b.rank || used(a.one.name) - used(b.one.name))
		.map(({ one }) => one);
}

function highlighted(name, text) {
	const at = text ? name.toLowerCase().indexOf(text.toLowerCase()) : -1;
	if (at < 0) return [name];
	return [name.slice(0, at), h('b', name.slice(at, at + text.length)), name.slice(at + text.length)];
}

/** Open the palette; `chosen(name)` is called on Enter. */
export function choose({ pictures, chosen, onlyNew = false, except = null, title = 'Class name' }) {
	const dialog = $('#palette');
	const list = h('ul', { id: 'palette-list', role: 'listbox', 'aria-label': 'Classes' });
	const label = onlyNew ? 'Name of the new class' : title;
	const input = nameField('input', {
		role: 'combobox',
		'aria-expanded': 'true',
		'aria-controls': 'palette-list',
		'aria-label': label,
		spellcheck: 'false',
		placeholder: label,
	});
	let rows = [],
		at = 0;
	const draw = () => {
		const text = input.value.trim();
		const existing = onlyNew ? [] : matches(text).filter(one => one.name !== except);
		rows = existing.slice(0, 8).map(one => ({ name: one.name, one }));
		if (text && !classNamed(text) && except === null) rows.push({ name: text });
		at = 0;
		list.replaceChildren(...rows.map(drawRow));
		mark();
	};
	const drawRow = ({ name, one }, index) =>
		h(
			'li.palrow',
			{ id: `palette-${index}`, role: 'option', onclick: () => finish(name) },
			one ? classPicture(one) : h('span.pic', icon('plus')),
			h('span', one ? highlighted(name, input.value.trim()) : `New class “${name}”`),
			one && h('span.quiet.small.push', `${count(checkedOf(one))} done`),
			one?.key && cap(one.key),
		);
	const mark = () => {
		[...list.children].forEach((row, index) => row.setAttribute('aria-selected', String(index === at)));
		input.setAttribute('aria-activedescendant', rows.length ? `palette-${at}` : '');
	};
	const finish = name => {
		dialog.close();
		chosen(name);
	};
	input.addEventListener('input', draw);
	input.addEventListener('keydown', event => {
		if (event.isComposing) return;
		if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
			event.preventDefault();
			at = (at + (event.key === 'ArrowDown' ? 1 : rows.length - 1)) % Math.max(1, rows.length);
			mark();
		} else if (event.key === 'Enter') {
			event.preventDefault();
			const name = input.value.trim();
			if (event.shiftKey && name && except === null) finish(name);
			else if (rows[at]) finish(rows[at].name);
		}
	});
	const hints = [
		['Enter', onlyNew ? 'Make class' : 'Choose'],
		['↓', 'Next'],
		except === null && !onlyNew ? ['Shift+Enter', 'New class'] : null,
		['Esc', 'Close'],
	];
	dialog.replaceChildren(
		h(
			'div.palhead',
			icon(onlyNew ? 'plus' : 'search'),
			input,
			pictures && h('span.quiet.small', `for ${plural(pictures, 'picture')}`),
		),
		list,
		h(
			'div.palfoot.small.quiet',
			hints.filter(Boolean).map(([key, what]) => h('span', cap(key), what)),
		),
	);
	draw();
	dialog.showModal();
	input.focus();
}
