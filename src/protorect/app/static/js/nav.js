// The class list: the only navigation.

import { newClass } from './actions.js';
import { last, makeClass } from './acts.js';
import { $, cap, count, h, icon, perFrame, plural, say, setVariables } from './dom.js';
import { choose } from './palette.js';
import { address, current } from './router.js';
import { checkedOf, on, proposedOf, store, total } from './store.js';
import { classPicture } from './tile.js';

const GROUPS = [
	['unsure', 'Unsure', 'ask'],
	['unknown', 'Unknown', 'slash'],
	['all', 'All pictures', 'all'],
];

/** How many pictures each class and group gained or lost by the last act. */
function moved() {
	const change = new Map();
	for (const { from, to, count: n } of last.summary) {
		change.set(from, (change.get(from) ?? 0) - n);
		change.set(to, (change.get(to) ?? 0) + n);
	}
	return change;
}

const spoken = text => h('span.sr', text);
const delta = n => h('span.delta', `${n > 0 ? '+' : '−'}${count(Math.abs(n))}`, spoken(' by your last act;'));

/** One entry: a picture, a name, a key, how many are done or how the number changed, how many are left. */
function row(href, here, change, { picture, name, key, title, done, left }) {
	const link = { href, title, 'aria-current': here && 'page', 'aria-keyshortcuts': key };
	return h(
		change ? 'a.cls.cols.moved' : 'a.cls.cols',
		link,
		picture,
		h('span.name', name),
		key ? cap(key) : h('span'),
		change ? delta(change) : h('span.n', done),
		h('span.n.left', left),
	);
}

function classRow(one, here, change) {
	const title = `${count(one.examples)} examples, ${count(one.accepted)} accepted, ${count(one.proposed)} proposed`;
	const done = [count(checkedOf(one)), spoken(` done: ${title};`)];
	const left = one.proposed ? [count(one.proposed), spoken(' left')] : [icon('check'), spoken('none left')];
	const shown = { picture: classPicture(one), ...one, title, done, left };
	return h('li', row(address('class', { name: one.name }), here, change, shown));
}

function groupRow(n, here, change, [kind, name, mark]) {
	const left = [count(n), spoken(' pictures')];
	return h('li', row(address(kind), here, change, { picture: h('span.pic', icon(mark)), name, left }));
}

/** Show rows in a list; `make` is called only for those that differ from what is shown. */
function drawRows(list, rows, make) {
	rows.forEach((row, index) => {
		const old = list.children[index],
			shows = JSON.stringify(row);
		if (old?.dataset.shows === shows) return;
		const made = make(...row);
		made.dataset.shows = shows;
		const focused = old?.contains(document.activeElement);
		if (old) old.replaceWith(made);
		else list.append(made);
		if (focused) made.firstChild.focus();
	});
	while (list.children.length > rows.length) list.lastChild.remove();
}

function drawSummary({ pictures, embedded, progress, unreadable, unsure, unknown, classes }) {
	const done = total(checkedOf),
		proposed = total(proposedOf);
	[done, proposed, unsure, unknown].forEach((n, index) => {
		const part = $('.stack').children[index];
		part.hidden = !n;
		setVariables(part, { n });
	});
	say({
		'sum-pictures': `${progress ? `${count(embedded)} of ` : ''}${plural(pictures, 'picture')}`,
		'sum-unreadable': unreadable ? `${count(unreadable)} cannot be read` : '',
		'sum-done': `${count(done)} done`,
		'sum-proposed': `${count(proposed)} proposed`,
		'class-count': `Classes, ${count(classes.length)}`,
	});
	$('#no-classes').hidden = classes.length > 0;
}

function drawNav() {
	const { state } = store,
		{ kind, parameters } = current,
		change = moved();
	if (!state) return;
	drawSummary(state);
	const counts = { ...state, all: state.pictures },
		here = kind === 'class' && parameters.name;
	const classes = state.classes.map(one => [one, one.name === here, change.get(one.name)]);
	drawRows($('#class-list'), classes, classRow);
	const groups = GROUPS.map(group => [counts[group[0]], kind === group[0], change.get(`_${group[0]}`), group]);
	drawRows($('#group-list'), groups, groupRow);
}

const makeEmpty = () => choose({ onlyNew: true, chosen: name => makeClass(name) });
$('#new-class').addEventListener('click', () => (current.grid ? newClass() : makeEmpty()));
on('state acts view', perFrame(drawNav));
on('view', () => $('#classes').classList.remove('open'));
