// The menu of a class: rename, merge, set key, move, delete.

import { changeClass, deleteClass } from './acts.js';
import { $, button, h, nameField, setPixels } from './dom.js';
import { choose } from './palette.js';
import { go } from './router.js';
import { classNamed, store } from './store.js';

const KEYS = [...'1234567890'];

export function classMenu(name, opener) {
	const menu = $('#menu');
	const item = (text, run) =>
		button(text, {
			kind: 'plain',
			role: 'menuitem',
			onclick: () => {
				menu.close();
				run();
			},
		});
	const one = classNamed(name);
	const at = store.state.classes.indexOf(one);
	const move = (text, position) =>
		store.state.classes[position] && item(text, () => changeClass(name, { position }, `moved ${name}`));
	menu.replaceChildren(
		h(
			'div',
			{ role: 'menu', 'aria-label': `Class ${name}` },
			item('Rename…', () => rename(name)),
			item('Merge into…', () => merge(name)),
			item(one.key ? `Set key (now ${one.key})…` : 'Set key…', () => setKey(name, one.key)),
			move('Move up', at - 1),
			move('Move down', at + 1),
			item('Delete', () => deleteClass(name)),
		),
	);
	const frame = opener.getBoundingClientRect();
	setPixels(menu, { x: frame.left, y: frame.bottom + 4 });
	menu.showModal();
}

function ask(title, field, apply) {
	$('#ask-title').textContent = title;
	$('#ask-field').replaceChildren(field);
	$('#ask-form').onsubmit = apply;
	$('#ask').showModal();
	field.focus();
	field.select?.();
}

/** Change a class into another name, and show the class of that name. */
async function become(name, next, change, text) {
	if (await changeClass(name, change, text)) go('class', { name: next });
}
function merge(name) {
	const chosen = into => become(name, into, { merge_into: into }, `merged ${name} into ${into}`);
	choose({ title: `Merge ${name} into`, except: name, chosen });
}
function rename(name) {
	const input = nameField('input.field.wide', { value: name, 'aria-label': 'New name' });
	ask(`Rename ${name}`, input, () => {
		const next = input.value.trim();
		if (next && next !== name) void become(name, next, { rename: next }, `renamed ${name} to ${next}`);
	});
}

function setKey(name, key) {
	const options = ['', ...KEYS].map(value =>
		h('option', { value, selected: value === (key ?? '') }, value || 'no key'),
	);
	const select = h('select.field', { 'aria-label': 'Key' }, options);
	ask(`Key of ${name}`, select, () => changeClass(name, { key: select.value || null }, `changed the key of ${name}`));
}
