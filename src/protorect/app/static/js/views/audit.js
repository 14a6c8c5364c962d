// Audit: random labeled pictures are checked, which gives the accuracy with its 95 % interval.

import { answerAudit, finishAudit } from '../acts.js';
import { read } from '../api.js';
import { $, count, fill, h, icon, percent, plural, setVariables } from '../dom.js';
import { choose } from '../palette.js';
import { go, view } from '../router.js';
import { checkedOf, proposedOf, total } from '../store.js';
import { thumbnail } from '../tile.js';
import { blank, frame } from './parts.js';

const SIZE = 50;

view('audit', async () => {
	if (total(proposedOf) + total(checkedOf)) return auditView(await read('audit', { n: SIZE }));
	const text = 'An audit checks random pictures that have a label.';
	const nothing = blank({ mark: 'target', title: 'No picture has a label yet', text });
	return { title: 'Audit', element: frame({ title: 'Audit' }, nothing) };
});

function auditView(audit) {
	const element = $('#audit-view').content.firstElementChild.cloneNode(true);
	const part = name => $(`[data-part=${name}]`, element);
	let answers, estimate, at;

	/** Show a sample, with the answers that it has already. */
	function take(sample) {
		audit = sample;
		answers = new Map(audit.answers.map(answer => [answer.id, answer]));
		estimate = audit.estimate;
		show(audit.pictures.findIndex(picture => !answers.has(picture.id)));
	}
	const focus = () => $('[aria-current]', element)?.focus();
	function show(index) {
		at = Math.max(0, Math.min(audit.pictures.length - 1, index));
		draw();
		focus();
	}
	async function answer(given) {
		const one = { id: audit.pictures[at].id, label: null, unknown: false, ...given };
		answers.set(one.id, one);
		show(at + 1);
		estimate = (await answerAudit(audit.audit, [one])) ?? estimate;
		show(at);
	}
	const corrections = () => [...answers.values()].filter(one => !one.right).map(one => one.id);

	const buttons = {
		right: () => answer({ right: true }),
		wrong: () => choose({ pictures: 1, title: 'The right class', chosen: label => answer({ right: false, label }) }),
		unknown: () => answer({ right: false, unknown: true }),
		skip: () => show(at + 1),
		more: async () => take(await read('audit', { n: audit.pictures.length + SIZE })),
		finish: async () => {
			await finishAudit(audit.audit, corrections());
			go('all');
		},
	};
	for (const [name, run] of Object.entries(buttons)) part(name).addEventListener('click', run);

	function draw() {
		const { pictures, population } = audit,
			wrong = corrections().length,
			of = `of ${pictures.length}`;
		part('counts').textContent =
			`${plural(pictures.length, 'random picture')} of the ${count(population)} that have a label`;
		part('finish').textContent = wrong ? `Finish and apply ${plural(wrong, 'correction')}` : 'Finish';
		part('question').textContent = `Picture ${at + 1} ${of}: is it ${pictures[at].label}?`;
		part('more').hidden = pictures.length >= population;
		element.classList.toggle('begun', estimate?.checked > 0);
		if (estimate?.checked) drawEstimate(element, estimate, pictures.length);
		const checks = pictures.map((picture, index) => {
			const check = drawCheck(picture, answers.get(picture.id), index === at, `${index + 1} ${of}`);
			check.addEventListener('click', () => show(index));
			return check;
		});
		fill(part('sample'), checks);
	}

	take(audit);
	const { right, wrong, unknown, skip } = buttons;
	const keys = {
		Enter: right,
		' ': right,
		a: right,
		c: wrong,
		x: unknown,
		ArrowRight: skip,
		ArrowLeft: () => show(at - 1),
	};
	return { element, title: 'Audit', targets: () => [], focus, keys };
}

function drawEstimate(element, { accuracy, low, high, right, checked }, size) {
	const start = Math.min(0.7, Math.floor(low * 10) / 10); // of the axis
	const place = value => `${(100 * (value - start)) / (1 - start)}%`;
	const interval = `95 % interval: ${(100 * low).toFixed(1)} to ${(100 * high).toFixed(1)} %`;
	const texts = {
		'.fig': percent(accuracy, 1),
		'.right': `${right} of ${checked} checked are right`,
		'.interval': interval,
		'.to-check': `${size > checked ? `${size - checked} to check` : 'All are checked'}${right < checked ? '; corrections apply at the end' : ''}`,
		'.tick.first': percent(start),
		'.tick.mid': percent((start + 1) / 2),
	};
	for (const [selector, text] of Object.entries(texts)) $(selector, element).textContent = text;
	$('.ci', element).ariaLabel = interval;
	setVariables($('.ci', element), { from: place(low), to: place(high), at: place(accuracy) });
}

function drawCheck(picture, answer, here, place) {
	const state = answer === undefined ? '' : answer.right ? 'right' : 'wrong';
	const correction = state === 'wrong' ? `→ ${answer.unknown ? 'Unknown' : answer.label}` : picture.label;
	const option = {
		role: 'option',
		'aria-selected': 'false',
		'data-answer': state,
		tabindex: here ? '0' : '-1',
		'aria-current': here && 'true',
		'aria-label': `${place}: ${picture.label}, ${state ? `marked ${state}` : 'not checked'}`,
	};
	const mark = state && h('span.mark', icon(state === 'right' ? 'check' : 'cross'));
	return h(
		'div.check',
		option,
		h('span.as', { 'aria-hidden': 'true' }, thumbnail(picture), mark, h('span.cap', correction)),
	);
}
