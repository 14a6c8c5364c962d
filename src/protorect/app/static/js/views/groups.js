// Unknown pictures: clusters of what fits no class, each of which can become a class.

import * as acts from '../acts.js';
import { read, thumbnailOf } from '../api.js';
import { $, button, count, h, plural } from '../dom.js';
import { choose } from '../palette.js';
import { blank, choice, gridView, idsOf } from './parts.js';
import { go, view } from '../router.js';
import { store } from '../store.js';

const SHOWN = 5; // pictures of a group; the rest on request

const modes = mode =>
	choice(
		'View',
		[
			['groups', 'Groups'],
			['grid', 'Grid'],
		],
		mode,
		value => go('unknown', value === 'groups' ? {} : { mode: value }),
	);
const nothing = () =>
	blank({ title: 'No unknown pictures', text: 'Pictures that look like none of the classes appear here.' });
const sentence = () =>
	`${plural(store.state.unknown, 'picture')} that ${store.state.unknown === 1 ? 'looks' : 'look'} like none of the ${plural(store.state.classes.length, 'class').replace('classs', 'classes')}`;

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
			controls: [modes(mode)],
			sections: [{ ids: await idsOf({ class: '_unknown', order: 'useful' }) }],
			blank: nothing(),
			hint: 'Select pictures and give them a class.',
		});
	}
	return groupsView(await read('groups', { n: 20 }));
});

function groupsView({ groups, single }) {
	const body =
		groups.length || single
			? [
					h(
						'div.acts',
						h(
							'span.hint',
							'Pictures that look alike are grouped. Type a name to make a group a class; select pictures in it to leave them out.',
						),
					),
					h('div.scroll', h('div.groups', groups.map(groupCard)), single && loose(single)),
				]
			: [nothing()];
	const element = h(
		'section.view',
		{ 'aria-label': 'Unknown pictures in groups' },
		h(
			'div.bar',
			h('h1', 'Unknown'),
			h('p.counts.desk', sentence()),
			h('span.push.desk'),
			h('div.desk', modes('groups')),
		),
		body,
	);
	return { element, title: 'Unknown', grid: null, focus: () => $('.group input', element)?.focus(), targets: () => [] };
}

function loose(single) {
	return h(
		'div.loose',
		h(
			'p',
			h('b', single === 1 ? '1 picture is like no other.' : `${count(single)} pictures are like no other.`),
			' ',
			h('span.quiet', 'They stay unknown until you label them.'),
		),
		button('Show in a grid', { kind: 'push', onclick: () => go('unknown', { mode: 'grid' }) }),
	);
}

function groupCard(group) {
	const left = new Set(); // ids that are left out
	const members = async () => (await read(`groups/${group.id}`)).ids.filter(id => !left.has(id));
	const settle = act => async () => {
		const ids = await members();
		if (ids.length) {
			await act(ids);
			go('unknown');
		}
	};
	const input = h('input.field', {
		'aria-label': 'Name of the new class',
		placeholder: 'Name of the class',
		autocomplete: 'off',
		maxlength: 200,
	});
	const form = h(
		'form.form',
		{
			onsubmit: event => {
				event.preventDefault();
				const name = input.value.trim();
				if (name)
					settle(ids =>
						store.state.classes.some(one => one.name === name) ? acts.label(ids, name) : acts.makeClass(name, ids),
					)();
			},
		},
		input,
		h('button.btn', { type: 'submit', 'aria-keyshortcuts': 'Enter' }, 'Make this a class'),
	);
	const picture = id => {
		const toggle = h(
			'button.member',
			{
				'aria-pressed': 'true',
				'aria-label': `Picture ${id}: part of the group`,
				onclick: () => {
					if (!left.delete(id)) left.add(id);
					toggle.setAttribute('aria-pressed', String(!left.has(id)));
				},
			},
			h('img', { alt: '', src: thumbnailOf(id) }),
		);
		return toggle;
	};
	const more = group.size - Math.min(SHOWN, group.ids.length);
	return h(
		'article.group',
		{ 'aria-label': `Group of ${plural(group.size, 'picture')}` },
		h(
			'div.sub',
			h('h2', plural(group.size, 'picture')),
			h(
				'span.row',
				button('Add to a class…', {
					kind: 'plain',
					onclick: () =>
						choose({
							pictures: group.size,
							chosen: (name, isNew) => settle(ids => (isNew ? acts.makeClass(name, ids) : acts.label(ids, name)))(),
						}),
				}),
				button('Leave unknown', { kind: 'plain', onclick: () => settle(acts.markUnknown)() }),
			),
		),
		h(
			'div.six',
			group.ids.slice(0, SHOWN).map(picture),
			more > 0
				? h(
						'button.more',
						{ onclick: () => go('unknown', { group: group.id }) },
						`+${count(more)}`,
						h('span.sr', `: show all ${count(group.size)} pictures`),
					)
				: null,
		),
		form,
	);
}
