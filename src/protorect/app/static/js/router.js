// Which view is shown. The address after # names it, so that Back, reload and links work.

import { query } from './api.js';
import { $ } from './dom.js';
import { Grid } from './grid.js';
import { classNamed, emit, on, store } from './store.js';

const views = new Map(); // kind -> function (parameters) -> {element, grid?, keys?, title}

/** Register a view; `open` gets the parameters of the address and returns what to show. */
export function view(kind, open) {
	views.set(kind, open);
}

export let current = { kind: null, parameters: {}, keys: {}, title: '' };

export const address = (kind, parameters = {}) => `#${kind}${query(parameters)}`;

export function go(kind, parameters = {}) {
	const to = address(kind, parameters);
	if (location.hash === to) void show();
	else location.hash = to;
}

function fromAddress() {
	const [kind, query = ''] = location.hash.slice(1).split('?');
	if (views.has(kind)) return [kind, Object.fromEntries(new URLSearchParams(query))];
	return [null, {}];
}

/** The view a project opens with: its first class that has something to review. */
function home() {
	const { classes } = store.state;
	if (!classes.length) return ['start', {}];
	const next = classes.find(one => one.proposed) ?? classes[0];
	return ['class', { name: next.name }];
}

/** Whether a view is that of a class which was removed, renamed or merged. */
const isGone = (kind, { name }) => kind === 'class' && !classNamed(name);

let opening = 0;

export async function show() {
	let [kind, parameters] = fromAddress();
	if (!kind || isGone(kind, parameters)) {
		[kind, parameters] = home();
		history.replaceState(null, '', address(kind, parameters));
	}
	const turn = (opening += 1);
	const opened = await views.get(kind)(parameters);
	if (turn !== opening) return; // another view was asked for meanwhile
	const target = $('#pictures');
	current = { kind, parameters, keys: {}, ...opened }; // nothing stays of the view before
	$('.view', target)?.remove();
	target.append(opened.element);
	Grid.show(opened.grid ?? null);
	document.title = `${opened.title} · ${store.state.project.name}`;
	emit('view');
	// While a name is typed to search for, the field keeps the focus.
	if (document.activeElement.id !== 'search') (opened.focus ?? (() => opened.grid?.focus(0)))();
}

addEventListener('hashchange', () => show());
on('state', () => {
	if (isGone(current.kind, current.parameters)) void show();
});
