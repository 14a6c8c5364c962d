// Choosing a class by typing a part of its name. Nothing happens before Enter.

import { $, cap, count, h, icon, plural, say } from './dom.js';
import { checkedOf, classNamed, store } from './store.js';
import { classPicture } from './tile.js';

/** Classes whose name matches: it begins so, a word begins so, anywhere; ties by last use. */
function matches(text) {
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
	return store.state.classes
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

/** Open the palette; `chosen(name)` is called on Enter. `onlyNew`: no class that exists; `except`: all others. */
export function choose({ pictures, chosen, onlyNew = false, except = null, title = 'Class name' }) {
	const dialog = $('#palette'),
		list = $('#palette-list'),
		input = $('#palette-input');
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
	input.oninput = draw;
	input.onkeydown = event => {
		if (event.isComposing || !['ArrowDown', 'ArrowUp', 'Enter'].includes(event.key)) return;
		event.preventDefault();
		const name = input.value.trim();
		if (event.key !== 'Enter') {
			at = (at + (event.key === 'ArrowDown' ? 1 : rows.length - 1)) % Math.max(1, rows.length);
			mark();
		} else if (event.shiftKey && name && except === null) finish(name);
		else if (rows[at]) finish(rows[at].name);
	};
	input.value = '';
	input.placeholder = input.ariaLabel = onlyNew ? 'Name of the new class' : title;
	say({
		'palette-for': pictures ? `for ${plural(pictures, 'picture')}` : '',
		'palette-verb': onlyNew ? 'Make class' : except === null ? 'Label' : 'Choose',
	});
	$('#palette-new').hidden = onlyNew || except !== null;
	draw();
	dialog.showModal();
	input.focus();
}
