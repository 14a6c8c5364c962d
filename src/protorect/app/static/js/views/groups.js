// Unknown pictures: clusters of what fits no class, each of which can become a class.

import * as acts from '../acts.js';
import { read } from '../api.js';
import { $, button, count, h, nameField, nameForm, plural } from '../dom.js';
import { choose } from '../palette.js';
import { go, view } from '../router.js';
import { store } from '../store.js';
import { thumbnail } from '../tile.js';
import { blank, frame, gridView, idsOf, modes } from './parts.js';

const SHOWN = 5; // pictures of a group; the rest on request

const ways = mode => modes('unknown', ['groups', 'Groups'], mode);
const nothing = () =>
	blank({ title: 'No unknown pictures', text: 'Pictures that look like none of the classes appear here.' });
const sentence = () =>
	`${plural(store.state.unknown, 'picture')} that ${store.state.unknown === 1 ? 'looks' : 'look'} like none of the ${plural(store.state.classes.length, 'class')}`;

view('unknown', async ({ mode = 'groups', group }) => {
	if (group !== undefined) {
		const { ids } = await read(`groups/${group}`);
		return gridView({
			title: plural(ids.length, 'similar picture'),
			counts: () => 'One group of the unknown pictures',
			sections: [{ ids }],
			blank: nothing(),
			hint: 'Select the pictures that belong together; N makes them a class.',
			controls: [button('All groups', { onclick: () => go('unknown') })],
		});
	}
	if (mode === 'grid') {
		return gridView({
			title: 'Unknown',
			counts: sentence,
			controls: [ways(mode)],
			sections: [{ ids: await idsOf({ class: '_unknown', order: 'useful' }) }],
			blank: nothing(),
			hint: 'Select pictures and give them a class.',
		});
	}
	return groupsView(await read('groups', { n: 20 }));
});

function groupsView({ groups, single, single_ids: ids }) {
	const hint =
		'Pictures that look alike are grouped. Type a name to make a group a class; select pictures in it to leave them out.';
	const cards = () => [
		h('div.acts', h('span.hint', hint)),
		h('div.scroll', h('div.groups', groups.map(groupCard)), single && loose(single, ids)),
	];
	const name = 'Unknown pictures in groups';
	const controls = h('div.desk', ways('groups'));
	const element = frame(
		{ name, title: 'Unknown', counts: sentence(), controls },
		groups.length || single ? cards() : nothing(),
	);
	return { element, title: 'Unknown', focus: () => $('.group input', element)?.focus(), targets: () => [] };
}

function loose(single, ids) {
	const text = `${plural(single, 'picture')} ${single === 1 ? 'is' : 'are'} like no other.`;
	const minis = ids.slice(0, 3).map(id => thumbnail(id));
	return h(
		'div.loose',
		h('span.minis', { 'aria-hidden': 'true' }, minis),
		h('p', h('b', text), ' ', h('span.quiet', 'They stay unknown until you label them.')),
		button('Show in a grid', { kind: 'push', onclick: () => go('unknown', { mode: 'grid' }) }),
	);
}

function groupCard(group) {
	const left = new Set(); // ids that are left out
	const settle = async act => {
		const ids = (await read(`groups/${group.id}`)).ids.filter(id => !left.has(id));
		if (!ids.length) return;
		await act(ids);
		go('unknown');
	};
	const assign = name => settle(ids => acts.assign(ids, name));
	const input = nameField('input.field', { 'aria-label': 'Name of the new class', placeholder: 'Name of the class' });
	const form = nameForm('form.form', { input, text: 'Make this a class', named: assign });
	const picture = id => {
		const onclick = ({ currentTarget }) => {
			if (!left.delete(id)) left.add(id);
			currentTarget.setAttribute('aria-pressed', String(!left.has(id)));
		};
		const pressed = { 'aria-pressed': 'true', 'aria-label': `Picture ${id}: part of the group` };
		return h('button.member', { ...pressed, onclick }, thumbnail(id));
	};
	const hidden = group.size - Math.min(SHOWN, group.ids.length);
	const more = () =>
		h(
			'button.more',
			{ onclick: () => go('unknown', { group: group.id }) },
			`+${count(hidden)}`,
			h('span.sr', ': show all'),
		);
	return h(
		'article.group',
		{ 'aria-label': `Group of ${plural(group.size, 'picture')}` },
		h(
			'div.sub',
			h('h2', plural(group.size, 'picture')),
			h(
				'span.row',
				button('Add to a class…', { kind: 'plain', onclick: () => choose({ pictures: group.size, chosen: assign }) }),
				button('Leave unknown', { kind: 'plain', onclick: () => settle(acts.markUnknown) }),
			),
		),
		h('div.six', group.ids.slice(0, SHOWN).map(picture), hidden > 0 && more()),
		form,
	);
}
