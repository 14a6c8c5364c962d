// Unsure pictures, one at a time, each choice beside its examples.

import { chooseButton, choices, newButton, unknownButton } from '../act_buttons.js';
import * as actions from '../actions.js';
import { pictureUrl, read } from '../api.js';
import { $, button, count, h, plural } from '../dom.js';
import { current, view } from '../router.js';
import { emit, load, on, store } from '../store.js';
import { thumbnail } from '../tile.js';
import { blank, frame, gridView, idsOf, modes } from './parts.js';

const EXAMPLES = 5; // shown beside each choice
const FILM = 8; // thumbnails below the picture

const ways = mode => modes('unsure', ['one', 'One at a time'], mode);
const nothing = () =>
	blank({
		title: 'No unsure pictures',
		text: 'Every picture that was read has a class or is unknown.',
		buttons: [button('Next class', { kind: 'first', onclick: () => actions.step(1) })],
	});

view('unsure', async ({ mode = 'one' }) => {
	const ids = await idsOf({ class: '_unsure', order: 'useful' });
	if (mode === 'grid') {
		return gridView({
			title: 'Unsure',
			counts: () => plural(store.state.unsure, 'picture'),
			controls: [ways(mode)],
			sections: [{ ids }],
			blank: nothing(),
			hint: 'Select pictures and give them a class. A labels each with its likeliest class.',
		});
	}
	ids.forEach(id => store.pictures.delete(id)); // what the page knows of them may be older
	return oneAtATime(ids);
});

function oneAtATime(ids) {
	const examples = new Map(), // class -> pictures
		counts = h('span'),
		body = h('div.one');
	let at = 0;
	const isSettled = id => (store.pictures.get(id)?.status ?? 'unsure') !== 'unsure';
	const focus = () => ($('.card', body) ?? $('.btn', body))?.focus({ preventScroll: true });

	function move(by) {
		at = Math.max(0, at + by);
		// What the last labels settled needs no look any more.
		while (by > 0 && isSettled(ids[at])) at += 1;
		emit('pick');
		draw().then(focus);
	}

	async function draw() {
		if (at >= ids.length) {
			body.replaceChildren(nothing());
			counts.textContent = '';
			return;
		}
		const around = ids.slice(Math.max(0, at - 1), at + FILM);
		await load(around);
		const picture = store.pictures.get(ids[at]);
		if (!picture) return;
		await Promise.all((picture.top ?? []).map(({ label }) => readExamples(label)));
		const settled = ids.slice(at + 1).filter(isSettled).length;
		const more = settled ? ` · ${count(settled)} more were settled by your labels` : '';
		counts.textContent = `Picture ${count(at + 1)} of ${count(ids.length)}${more}`;
		const focused = body.contains(document.activeElement);
		body.replaceChildren(stage(picture, around), ask(picture));
		if (focused) focus();
	}

	async function readExamples(name) {
		if (examples.has(name)) return;
		const wanted = { class: name, status: 'example,accepted', order: 'sure', limit: EXAMPLES };
		examples.set(name, (await read('pictures', wanted)).pictures);
	}

	function ask(picture) {
		const images = label => (examples.get(label) ?? []).map(one => thumbnail(one));
		const first = picture.top?.[0]?.label;
		return h(
			'div.ask',
			{ role: 'group', 'aria-label': 'Which class is it?' },
			h('h2.desk', 'Which class is it?'),
			choices(picture, 'card', label => h('span.ex', { 'aria-hidden': 'true' }, images(label))),
			h('div.others', chooseButton(), newButton(), unknownButton(), skip()),
			first && h('p.small.quiet.desk', `Enter accepts ${first}. The keys 1 to 0 label with their class.`),
		);
	}
	const next = () => move(1);
	const skip = () => button('Skip', { key: '→', keys: 'ArrowRight', onclick: next });

	const name = 'Unsure pictures, one at a time';
	const element = frame({ name, title: 'Unsure', counts, controls: h('div.desk', ways('one')) }, body);
	const drawn = draw();
	return {
		element,
		title: 'Unsure',
		targets: () => ids.slice(at, at + 1),
		advance: next,
		place: () => at < ids.length && `${count(at + 1)} of ${count(ids.length)}`,
		refresh: draw,
		focus: () => drawn.then(focus),
		keys: { Enter: () => actions.likeliest(0), ArrowRight: next, ' ': next, ArrowLeft: () => move(-1) },
	};
}

function stage(picture, around) {
	const vars = { ratio: (picture.width || 1) / (picture.height || 1) };
	const fit = h('div.fit', { vars }, h('img.big', { alt: picture.name, src: pictureUrl(picture) }));
	const film = around.map(id => {
		const one = store.pictures.get(id);
		return one && !one.error && thumbnail(one, { class: id === picture.id && 'at' });
	});
	const caption = `${picture.name}${picture.width ? `, ${picture.width} × ${picture.height}` : ''}`;
	return h(
		'figure.stage',
		fit,
		h('figcaption', h('span.small.quiet', caption), h('span.film', { 'aria-hidden': 'true' }, film)),
	);
}

on('state', () => {
	if (current.kind === 'unsure' && !current.grid) current.refresh();
});
