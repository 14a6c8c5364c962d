// Unsure pictures, one at a time, each choice beside its examples.

import { chooseButton, choices, newButton, unknownButton } from '../act_buttons.js';
import * as actions from '../actions.js';
import { pictureUrl, read } from '../api.js';
import { $, button, count, h, plural, setVariables } from '../dom.js';
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
	return new OneAtATime(ids).view();
});

class OneAtATime {
	constructor(ids) {
		this.ids = ids;
		this.at = 0;
		this.examples = new Map(); // class -> pictures
	}

	view() {
		this.counts = h('span');
		this.body = h('div.one');
		const name = 'Unsure pictures, one at a time';
		const controls = h('div.desk', ways('one'));
		const element = frame({ name, title: 'Unsure', counts: this.counts, controls }, this.body);
		this.draw();
		return {
			element,
			title: 'Unsure',
			grid: null,
			targets: () => (this.at < this.ids.length ? [this.ids[this.at]] : []),
			advance: () => this.move(1),
			place: () => this.ids[this.at] !== undefined && `${count(this.at + 1)} of ${count(this.ids.length)}`,
			refresh: () => this.draw(),
			focus: () => this.focus(),
			keys: {
				Enter: () => actions.likeliest(0),
				ArrowRight: () => this.move(1),
				ArrowLeft: () => this.move(-1),
				' ': () => this.move(1),
			},
		};
	}

	focus() {
		($('.card', this.body) ?? $('.btn', this.body))?.focus({ preventScroll: true });
	}

	move(by) {
		this.at = Math.max(0, this.at + by);
		// What the last labels settled needs no look any more.
		while (by > 0 && this.at < this.ids.length) {
			const picture = store.pictures.get(this.ids[this.at]);
			if (!picture || picture.status === 'unsure') break;
			this.at += 1;
		}
		emit('pick');
		this.draw().then(() => this.focus());
	}

	async draw() {
		if (this.at >= this.ids.length) {
			this.body.replaceChildren(nothing());
			this.counts.textContent = '';
			return;
		}
		const around = this.ids.slice(Math.max(0, this.at - 1), this.at + FILM);
		await load(around);
		const picture = store.pictures.get(this.ids[this.at]);
		if (!picture) return;
		await Promise.all((picture.top ?? []).map(({ label }) => this.readExamples(label)));
		const settled = this.ids.filter(
			(id, index) => index > this.at && (store.pictures.get(id)?.status ?? 'unsure') !== 'unsure',
		).length;
		this.counts.textContent = `Picture ${count(this.at + 1)} of ${count(this.ids.length)}${settled ? ` · ${count(settled)} more were settled by your labels` : ''}`;
		this.body.replaceChildren(this.stage(picture, around), this.ask(picture));
	}

	async readExamples(name) {
		if (this.examples.has(name)) return;
		this.examples.set(
			name,
			(await read('pictures', { class: name, status: 'example,accepted', order: 'sure', limit: EXAMPLES })).pictures,
		);
	}

	stage(picture, around) {
		const fit = h('div.fit', h('img.big', { alt: picture.name, src: pictureUrl(picture) }));
		setVariables(fit, { '--ratio': (picture.width || 1) / (picture.height || 1) });
		const film = h(
			'span.film',
			{ 'aria-hidden': 'true' },
			around.map(id => {
				const one = store.pictures.get(id);
				return one && !one.error && thumbnail(one, { class: id === picture.id && 'at' });
			}),
		);
		const caption = `${picture.name}${picture.width ? `, ${picture.width} × ${picture.height}` : ''}`;
		return h('figure.stage', fit, h('figcaption', h('span.small.quiet', caption), film));
	}

	ask(picture) {
		const examples = label =>
			h(
				'span.ex',
				{ 'aria-hidden': 'true' },
				(this.examples.get(label) ?? []).map(one => thumbnail(one)),
			);
		const first = picture.top?.[0]?.label;
		return h(
			'div.ask',
			{ role: 'group', 'aria-label': 'Which class is it?' },
			h('h2.desk', 'Which class is it?'),
			choices(picture, 'card', examples),
			h(
				'div.others',
				chooseButton(),
				newButton(),
				unknownButton(),
				button('Skip', { key: '→', keys: 'ArrowRight', onclick: () => this.move(1) }),
			),
			first && h('p.small.quiet.desk', `Enter accepts ${first}. The keys 1 to 0 label with their class.`),
		);
	}
}

on('state', () => {
	if (current.kind === 'unsure' && !current.grid) current.refresh?.();
});
