// Acts: shown at once, sent in order and one at a time, kept until the server has answered.

import { Refused, Unreachable, read, remove, write } from './api.js';
import { plural } from './dom.js';
import { emit, keep, load, refreshState, setState, showAtOnce, store, usedClass } from './store.js';

const RETRIES = [1, 2, 4, 5]; // seconds between attempts to reach the server
const queue = []; // acts that the server has not confirmed
let sending = false;

export const connection = { lost: null, next: 0, command: '' }; // lost: the time since when
/** What the strip shows: the last act, its changes, and whether it is saved. */
export const last = { text: '', count: 0, summary: [], thumbnail: null, problem: null, working: false };

/** A random name; crypto.randomUUID needs HTTPS or the loopback interface. */
export const identifier = () => crypto.getRandomValues(new Uint32Array(4)).join('-');
export const unsaved = () => queue.length;

function enqueue(act) {
	store.changed = new Map();
	Object.assign(last, {
		text: act.text,
		count: 0,
		summary: [],
		thumbnail: act.ids?.[0] ?? null,
		problem: null,
		working: true,
	});
	act.key = identifier();
	act.restore = act.show ? showAtOnce(act.ids, act.show) : () => {};
	queue.push(act);
	emit('changed');
	emit('acts');
	const sent = new Promise(resolve => {
		act.done = resolve;
	});
	send();
	return sent;
}

async function send() {
	if (sending) return;
	sending = true;
	while (queue.length) {
		const act = queue[0];
		try {
			const answer = await act.send({ ...act.body, act_id: act.key });
			queue.shift();
			connected();
			confirm(act, answer);
			act.done(answer);
		} catch (error) {
			if (error instanceof Refused) {
				queue.shift();
				refuse(act, error);
				act.done(null);
			} else if (error instanceof Unreachable) {
				await waitForServer();
			} else throw error;
		}
	}
	sending = false;
	emit('acts');
}

function confirm(act, answer) {
	store.changed = new Map(answer.changed.map(one => [one.id, one]));
	Object.assign(last, {
		count: answer.changed.length,
		summary: answer.summary,
		working: queue.length > 0,
		problem: null,
		act: answer.act,
		text: `Act ${answer.act}: ${act.text}`,
	});
	const known = answer.changed.filter(one => store.pictures.has(one.id));
	keep(known.map(one => movedTo(store.pictures.get(one.id), one)));
	setState(answer.state);
	emit('changed');
	emit('acts');
	load([...known.map(one => one.id), ...(act.ids ?? [])].slice(0, 500), true).catch(() => {});
}

function movedTo(picture, change) {
	if (change.to === '_unsure') return { ...picture, status: 'unsure', was: change.from };
	if (change.to === '_unknown') return { ...picture, status: 'unknown', was: change.from };
	const status = ['unsure', 'unknown'].includes(picture.status) ? 'proposed' : picture.status;
	return { ...picture, label: change.to, status, was: change.from };
}

function refuse(act, error) {
	act.restore();
	const text = error.status === 409 ? `Changed in another window: ${error.message}` : error.message;
	Object.assign(last, { problem: { text, again: () => enqueue(act) }, working: queue.length > 0 });
	emit('acts');
	refreshState().catch(() => {});
}

/** Show what the last act changed that was done before the page was opened. */
export function showLast(given) {
	if (given) {
		const total = given.summary.reduce((sum, one) => sum + one.count, 0);
		Object.assign(last, {
			text: `Act ${given.act}, the last one`,
			count: total,
			summary: given.summary,
			act: given.act,
		});
	}
	emit('acts');
}

/** Show a sentence of the server that belongs to no act. */
export function showProblem(text) {
	Object.assign(last, { problem: { text }, working: false });
	emit('acts');
}

/** Wait, with growing pauses, until the server answers again. */
async function waitForServer() {
	for (let attempt = 0; ; attempt += 1) {
		disconnected(RETRIES[Math.min(attempt, RETRIES.length - 1)]);
		await new Promise(resolve => {
			connection.retry = resolve;
			setTimeout(resolve, connection.next * 1000);
		});
		try {
			setState(await read('state'));
			connected();
			return;
		} catch (error) {
			if (error instanceof Refused) {
				connected();
				return;
			}
		}
	}
}

export function disconnected(next) {
	connection.lost ??= new Date();
	connection.next = next;
	emit('connection');
}
export function connected() {
	if (connection.lost === null) return;
	connection.lost = null;
	emit('connection');
}
/** The stream of events broke while no act waits: find out whether the server is there. */
export async function checkConnection() {
	if (sending || connection.lost) return;
	sending = true;
	try {
		await read('state');
	} catch (error) {
		if (error instanceof Unreachable) await waitForServer();
	}
	sending = false;
	send();
}

export function drop() {
	const act = queue.pop();
	act?.restore();
	act?.done(null);
	Object.assign(last, { text: 'The act was dropped', count: 0, summary: [], working: queue.length > 0 });
	emit('acts');
}

// ---- The acts ----

const pictures = ids => plural(ids.length, 'picture');
/** Send an act on pictures, which shows `change` on them at once. */
const act = (path, text, body, change) =>
	enqueue({ ids: body.ids, text: `you ${text}`, body, show: change, send: given => write('POST', path, given) });
const given = name => () => ({ label: name, status: 'example', probability: 1 });

export function label(ids, name) {
	usedClass(name);
	return act('label', `labeled ${pictures(ids)} ${name}`, { ids, label: name }, given(name));
}
export function labelEach(labels) {
	const ids = Object.keys(labels).map(Number);
	const show = picture => given(labels[picture.id])();
	const send = body => write('POST', 'label', body);
	return enqueue({ ids, text: `you labeled ${pictures(ids)}`, body: { labels }, show, send });
}
export const unlabel = ids =>
	act('label', `took the label of ${pictures(ids)} back`, { ids, label: null }, () => ({ status: 'proposed' }));
export const markUnknown = ids =>
	act('label', `marked ${pictures(ids)} unknown`, { ids, unknown: true }, () => ({ status: 'unknown' }));
export const markUnsure = ids =>
	act('label', `put ${pictures(ids)} aside`, { ids, unsure: true }, () => ({ status: 'unsure' }));
export const accept = ids => act('accept', `accepted ${pictures(ids)}`, { ids }, () => ({ status: 'accepted' }));
export function makeClass(name, ids = []) {
	usedClass(name);
	return act('class', `made the class ${name}`, { name, ids }, given(name));
}
export const undo = () => act('undo', 'undid the last act', {});
export const redo = () => act('redo', 'did the act again', {});
export const changeClass = (name, change, text) =>
	enqueue({ text: `you ${text}`, body: { name, ...change }, send: body => write('PATCH', 'class', body) });
export const deleteClass = name =>
	enqueue({ text: `you deleted the class ${name}`, send: ({ act_id }) => remove('class', { name, act_id }) });
