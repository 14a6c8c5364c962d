// Lists of pictures: the review of a class, all, similar ones, those found by name, the most useful, what changed.

import { accept } from '../acts.js';
import { read } from '../api.js';
import { classMenu } from '../class_menu.js';
import { $, button, count, iconButton, plural, shown } from '../dom.js';
import { Grid } from '../grid.js';
import { go, view } from '../router.js';
import { checkedOf, classNamed, groupOf, load, store } from '../store.js';
import { blank, choice, gridView, idsOf } from './parts.js';

const ORDERS = [
	['sure', 'Surest'],
	['unsure', 'Least sure'],
	['useful', 'Most useful'],
];

const HINT = 'Select pictures to label them. Enter accepts the proposals of the page.';
const orders = (options, chosen, pick) => choice('Order of the pictures', options, chosen, order => pick({ order }));

const way = (text, ...to) => button(text, { key: 'J', kind: 'first', onclick: () => go(...to) });

function nextClass(name) {
	const { classes } = store.state;
	const at = classes.findIndex(one => one.name === name);
	return [...classes.slice(at + 1), ...classes.slice(0, at)].find(one => one.proposed);
}

function nothingLeft(one) {
	const next = nextClass(one.name);
	return blank({
		title: `Nothing left to review in ${one.name}`,
		text: `All ${plural(checkedOf(one), 'picture')} are checked. If later labels bring new proposals, they appear here.`,
		buttons: [
			next
				? way(`Go to ${next.name}, ${count(next.proposed)} left`, 'class', { name: next.name })
				: way('Audit the labels', 'audit'),
			button(`Show all ${count(checkedOf(one))}`, { onclick: () => go('class', { name: one.name, all: 1 }) }),
		],
	});
}

view('class', async ({ name, order = 'unsure', all }) => {
	const one = classNamed(name);
	const [proposed, checked] = await Promise.all([
		idsOf({ class: name, status: 'proposed', order }),
		idsOf({ class: name, status: 'accepted,example', order }),
	]);
	// What is to be reviewed comes first; with nothing to review, the list says so.
	const ids = proposed.length || all ? [...proposed, ...checked] : [];
	return gridView({
		title: name,
		menu: iconButton(
			'dots',
			`Rename, merge, set key or delete ${name}`,
			event => classMenu(name, event.currentTarget),
			{ 'aria-haspopup': 'menu' },
		),
		counts: () => {
			const now = classNamed(name) ?? one;
			return `${plural(now.examples, 'example')} · ${count(now.accepted)} accepted · ${count(now.proposed)} proposed${store.state.progress ? ' so far' : ''}`;
		},
		controls: orders(ORDERS, order, to => go('class', { name, all, ...to })),
		sections: [{ ids }],
		labelled: name,
		keys: !ids.length && { j: () => $('.blank .first')?.click() },
		hint: `Select the pictures that are not ${name}. Enter accepts the rest of the page.`,
		blank: nothingLeft(one),
	});
});

view('all', async ({ order = 'name' }) =>
	gridView({
		title: 'All pictures',
		counts: () =>
			`${count(store.state.embedded)} read${store.state.unreadable ? ` · ${count(store.state.unreadable)} cannot be read` : ''}`,
		controls: orders([['name', 'Name'], ...ORDERS], order, to => go('all', to)),
		sections: [{ ids: await idsOf({ order }) }],
		hint: HINT,
		blank: blank({ mark: 'all', title: 'No pictures' }),
	}),
);

view('similar', async ({ id }) => {
	const { pictures } = await read('pictures', { ids: id });
	return gridView({
		title: `Similar to ${pictures[0].name}`,
		counts: () => 'The most similar first',
		sections: [{ ids: await idsOf({ similar: id }) }],
		hint: 'Select pictures to label them together.',
		blank: blank({ mark: 'search', title: 'No similar pictures' }),
	});
});

view('search', async ({ text }) => {
	const ids = await idsOf({ search: text, order: 'name' });
	return gridView({
		title: `“${text}”`,
		counts: () => `${plural(ids.length, 'picture')} found`,
		sections: [{ ids }],
		hint: HINT,
		blank: blank({
			mark: 'search',
			title: `No file name contains “${text}”`,
			buttons: [
				button('Clear the search', {
					kind: 'first',
					onclick: () => {
						$('#search').value = '';
						history.back();
					},
				}),
			],
		}),
	});
});

view('useful', async () => {
	const { pictures } = await read('suggest', { n: 100 });
	return gridView({
		title: 'Most useful pictures',
		counts: () => 'Their labels would help most',
		sections: [{ ids: pictures.map(picture => picture.id) }],
		hint: 'Label these first: each of them teaches the most about the others.',
		blank: blank({ title: 'No picture needs a label' }),
	});
});

view('changes', async ({ act }) => {
	const ids = await idsOf({ act, order: 'unsure' });
	await load(ids, true);
	const pictures = ids.map(id => store.pictures.get(id)).filter(Boolean);
	// Of the last act the page has the answer itself; probabilities that came later may say something else.
	const change = picture => {
		const { from, to } = store.changed.get(picture.id) ?? { from: picture.was, to: groupOf(picture) };
		return JSON.stringify([from, to]);
	};
	const groups = Map.groupBy(pictures, change);
	const sections = [...groups]
		.sort((a, b) => b[1].length - a[1].length)
		.map(([key, members]) => changeSection(JSON.parse(key), members));
	return gridView({
		title: 'What changed',
		counts: () => `${plural(ids.length, 'picture')} changed by act ${act}`,
		sections,
		hint: 'Select the pictures whose new class is wrong.',
		blank: blank({ title: 'Nothing changed' }),
	});
});

function changeSection([from, to], members) {
	const ids = members.map(picture => picture.id);
	const proposed = () =>
		ids.filter(id => {
			const { label, status } = store.pictures.get(id) ?? {};
			return label === to && !/example|accepted/.test(status) && !Grid.current?.selected.has(id);
		});
	const text = `${plural(ids.length, 'picture')}: ${shown(from)} → ${shown(to)}`;
	const n = proposed().length;
	return { title: text, ids, action: n > 0 && button(`Accept ${count(n)}`, { onclick: () => accept(proposed()) }) };
}
