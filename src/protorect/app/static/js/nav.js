// The class list: the only navigation.

import { newClass } from './actions.js';
import { last, makeClass } from './acts.js';
import { $, button, cap, count, h, icon, plural, setVariables } from './dom.js';
import { choose } from './palette.js';
import { address, current } from './router.js';
import { checkedOf, on, store } from './store.js';
import { classPicture } from './tile.js';

/** How many pictures each class and group gained or lost by the last act. */
function moved() {
	const change = new Map();
	for (const { from, to, count: n } of last.summary) {
		change.set(from, (change.get(from) ?? 0) - n);
		change.set(to, (change.get(to) ?? 0) + n);
	}
	return change;
}

function delta(n) {
	return h('span.delta', `${n > 0 ? '+' : '−'}${count(Math.abs(n))}`, h('span.sr', ' by your last act;'));
}

/** One entry: a picture, a name, a key, how many are done or how the number changed, how many are left. */
function row(href, here, change, { picture, name, key, title, done, left }) {
	return h(
		'a',
		{
			class: change ? 'cls cols moved' : 'cls cols',
			href,
			title,
			'aria-current': here && 'page',
			'aria-keyshortcuts': key,
		},
		picture,
		h('span.name', name),
		key ? cap(key) : h('span'),
		change ? delta(change) : h('span.n', done),
		h('span.n.left', left),
	);
}
const spoken = text => h('span.sr', text);

function classRow(one, change) {
	const title = `${count(one.examples)} examples, ${count(one.accepted)} accepted, ${count(one.proposed)} proposed`;
	const here = current.kind === 'class' && current.parameters.name === one.name;
	const done = [count(checkedOf(one)), spoken(` done: ${title};`)];
	const left = one.proposed ? [count(one.proposed), spoken(' left')] : [icon('check'), spoken('none left')];
	const { name, key } = one;
	return h(
		'li',
		row(address('class', { name }), here, change, { picture: classPicture(one), name, key, title, done, left }),
	);
}

function groupRow(kind, name, mark, n, change) {
	const left = [count(n), spoken(' pictures')];
	return row(address(kind), current.kind === kind, change, { picture: h('span.pic', icon(mark)), name, left });
}

function summary(state) {
	const done = state.classes.reduce((sum, one) => sum + checkedOf(one), 0);
	const proposed = state.classes.reduce((sum, one) => sum + one.proposed, 0);
	const stack = h('div.stack', { 'aria-hidden': 'true' });
	for (const [kind, n] of [
		['done', done],
		['prop', proposed],
		['unsure', state.unsure],
		['unknown', state.unknown],
	]) {
		if (n) setVariables(stack.appendChild(h('i', { class: kind })), { '--n': n });
	}
	return h(
		'div.sum',
		h(
			'div.line',
			h('b', `${state.progress ? `${count(state.embedded)} of ` : ''}${plural(state.pictures, 'picture')}`),
			state.unreadable && h('span.small.quiet', `${count(state.unreadable)} cannot be read`),
		),
		stack,
		h('div.line.small.quiet', h('span', `${count(done)} done`), h('span', `${count(proposed)} proposed`)),
	);
}

function drawNav() {
	const { state } = store;
	const nav = $('#classes');
	const scrolled = nav.querySelector('.list')?.scrollTop ?? 0;
	const focused = nav.contains(document.activeElement) ? document.activeElement.getAttribute('href') : null;
	const change = moved();
	const list = state.classes.length
		? h(
				'ul.list',
				state.classes.map(one => classRow(one, change.get(one.name))),
			)
		: h('p.none', 'No classes yet. Select pictures that show the same thing and type its name.');
	nav.replaceChildren(
		summary(state),
		h('div.navhead.cols', h('h2', `Classes, ${count(state.classes.length)}`), h('span', 'Done'), h('span', 'Left')),
		list,
		h(
			'div.navfoot',
			button([icon('plus'), 'New class'], {
				key: 'N',
				kind: 'plain add',
				onclick: () => (current.grid ? newClass() : choose({ onlyNew: true, chosen: name => makeClass(name) })),
			}),
			groupRow('unsure', 'Unsure', 'ask', state.unsure, change.get('_unsure')),
			groupRow('unknown', 'Unknown', 'slash', state.unknown, change.get('_unknown')),
			groupRow('all', 'All pictures', 'all', state.pictures, 0),
		),
	);
	list.scrollTop = scrolled;
	if (focused) [...nav.querySelectorAll('a')].find(link => link.getAttribute('href') === focused)?.focus();
}

on('state', drawNav);
on('acts', () => {
	if (store.state) drawNav();
});
on('view', () => {
	drawNav();
	$('#classes').classList.remove('open');
});
