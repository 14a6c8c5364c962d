// Audit: random labeled pictures are checked, which gives the accuracy with its 95 % interval.

import { answerAudit, finishAudit } from '../acts.js';
import { read } from '../api.js';
import { $, button, count, h, icon, percent, plural } from '../dom.js';
import { choose } from '../palette.js';
import { go, view } from '../router.js';
import { checkedOf, store } from '../store.js';
import { thumbnail } from '../tile.js';
import { blank, frame } from './parts.js';

const SIZE = 50;

const nothing = () =>
	blank({
		mark: 'target',
		title: 'No picture has a label yet',
		text: 'An audit checks random pictures that have a label.',
	});

view('audit', async () => {
	if (store.state.classes.some(one => one.proposed || checkedOf(one)))
		return new AuditView(await read('audit', { n: SIZE })).view();
	return { title: 'Audit', element: frame({ title: 'Audit' }, nothing()) };
});

class AuditView {
	constructor(audit) {
		this.take(audit);
	}

	/** Show a sample, with the answers that it has already. */
	take(audit) {
		this.audit = audit;
		this.answers = new Map(audit.answers.map(answer => [answer.id, answer]));
		this.estimate = audit.estimate;
		const next = audit.pictures.findIndex(picture => !this.answers.has(picture.id));
		this.at = Math.max(0, next);
	}

	view() {
		this.element = h('section.view', { 'aria-label': 'Audit' });
		this.draw();
		return {
			element: this.element,
			title: 'Audit',
			grid: null,
			targets: () => [],
			focus: () => this.focus(),
			keys: {
				Enter: () => this.right(),
				a: () => this.right(),
				c: () => this.wrong(),
				x: () => this.answer({ right: false, unknown: true }),
				' ': () => this.right(),
				ArrowRight: () => this.show(this.at + 1),
				ArrowLeft: () => this.show(this.at - 1),
			},
		};
	}

	get picture() {
		return this.audit.pictures[this.at];
	}
	focus() {
		$('[aria-current]', this.element)?.focus();
	}
	show(index) {
		this.at = Math.max(0, Math.min(this.audit.pictures.length - 1, index));
		this.draw();
		this.focus();
	}
	right() {
		this.answer({ right: true });
	}
	wrong() {
		choose({ pictures: 1, title: 'The right class', chosen: name => this.answer({ right: false, label: name }) });
	}

	async answer(given) {
		const answer = { id: this.picture.id, label: null, unknown: false, ...given };
		this.answers.set(answer.id, answer);
		this.show(this.at + 1);
		this.estimate = (await answerAudit(this.audit.audit, [answer])) ?? this.estimate;
		this.show(this.at);
	}

	get corrections() {
		return [...this.answers.values()].filter(answer => !answer.right).map(answer => answer.id);
	}
	async finish() {
		await finishAudit(this.audit.audit, this.corrections);
		go('all');
	}

	async more() {
		this.take(await read('audit', { n: this.audit.pictures.length + SIZE }));
		this.show(this.at);
	}

	draw() {
		const { pictures, population } = this.audit;
		const wrong = this.corrections.length;
		const finish = wrong ? `Finish and apply ${plural(wrong, 'correction')}` : 'Finish';
		const counts = `${plural(pictures.length, 'random picture')} of the ${count(population)} that have a label`;
		const more = pictures.length < population && button(`Check ${SIZE} more`, { onclick: () => this.more() });
		const list = { role: 'listbox', 'aria-label': 'Random sample' };
		const drawn = frame(
			{ title: 'Audit', counts, controls: [more, button(finish, { onclick: () => this.finish() })] },
			this.drawEstimate(),
			this.drawQuestion(),
			h(
				'div.scroll.flush',
				h(
					'div.fifty',
					list,
					pictures.map((picture, index) => this.drawPicture(picture, index)),
				),
			),
		);
		this.element.replaceChildren(...drawn.childNodes);
	}

	drawEstimate() {
		const found = this.estimate;
		const box = (...content) => h('div.est', { role: 'region', 'aria-label': 'Estimate' }, ...content);
		if (!found?.checked)
			return box(h('p.quiet', 'Are the labels right? Check these pictures; the estimate appears here.'));
		const start = Math.min(0.7, Math.floor(found.low * 10) / 10); // of the axis
		const place = value => `${(100 * (value - start)) / (1 - start)}%`;
		const interval = `${(100 * found.low).toFixed(1)} to ${(100 * found.high).toFixed(1)} %`;
		const tick = (value, kind) => h(`span.tick${kind}`, { vars: { '--at': place(value) } }, percent(value));
		const left = this.audit.pictures.length - found.checked;
		return box(
			h(
				'div',
				h('div.fig', percent(found.accuracy, 1)),
				h('div.quiet', `${found.right} of ${found.checked} checked are right`),
			),
			h(
				'div.ci',
				{ role: 'img', 'aria-label': `95 % interval: ${interval}` },
				h('span.axis'),
				h('span.span', { vars: { '--from': place(found.low), '--to': place(found.high) } }),
				h('span.dot', { vars: { '--at': place(found.accuracy) } }),
				tick(start, '.first'),
				tick((start + 1) / 2, ''),
				tick(1, '.last'),
			),
			h('div', h('b', `95 % interval: ${interval}`), h('div.quiet', left ? `${left} to check` : 'All are checked')),
		);
	}

	drawQuestion() {
		const picture = this.picture;
		return h(
			'div.acts.plain',
			{ role: 'toolbar', 'aria-label': `Acts on picture ${this.at + 1}` },
			h('span.what', `Picture ${this.at + 1} of ${this.audit.pictures.length}: is it ${picture.label}?`),
			button('Right', { key: 'Enter', kind: 'first', onclick: () => this.right() }),
			button('Wrong, choose class…', { key: 'C', onclick: () => this.wrong() }),
			button('Wrong, unknown', { key: 'X', onclick: () => this.answer({ right: false, unknown: true }) }),
			button('Skip', { key: '→', keys: 'ArrowRight', kind: 'plain', onclick: () => this.show(this.at + 1) }),
		);
	}

	drawPicture(picture, index) {
		const answer = this.answers.get(picture.id);
		const state = answer === undefined ? '' : answer.right ? 'right' : 'wrong';
		const correction = answer && !answer.right ? `→ ${answer.unknown ? 'Unknown' : answer.label}` : picture.label;
		return h(
			'div.check',
			{
				role: 'option',
				'aria-selected': 'false',
				'data-answer': state,
				tabindex: index === this.at ? '0' : '-1',
				'aria-current': index === this.at ? 'true' : null,
				'aria-label': `${index + 1} of ${this.audit.pictures.length}: ${picture.label}, ${state ? `marked ${state}` : 'not checked'}`,
				onclick: () => this.show(index),
			},
			h(
				'span.as',
				{ 'aria-hidden': 'true' },
				thumbnail(picture),
				state ? h('span.mark', icon(state === 'right' ? 'check' : 'cross')) : null,
				h('span.cap', correction),
			),
		);
	}
}
