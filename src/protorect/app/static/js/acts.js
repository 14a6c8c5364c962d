// Acts: shown at once, sent in order and one at a time, kept until the server has answered.

import { Refused, Unreachable, remove, write } from './api.js';
import { plural } from './dom.js';
import { classNamed, emit, isAside, keep, load, refreshState, setState, showAtOnce, store } from './store.js';

const RETRIES = [1, 2, 4, 5]; // seconds between attempts to reach the server
const queue = []; // acts that the server has not confirmed
let sending = false;

export const connection = { lost: null, next: 0 }; // lost: the time since when
/** What the strip shows: the last act, its changes, and whether it is saved. */
export const last = { text: '', count: 0, summary: [], problem: null, working: false };

/** A random name; crypto.randomUUID needs HTTPS or the loopback interface. */
const identifier = () => crypto.getRandomValues(new Uint32Array(4)).join('-');
export const unsaved = () => queue.length;
/** Whether a picture waits for a server that does not answer. */
export const isUnsaved = ({ id }) => connection.lost !== null && queue.some(act => act.ids?.includes(id));

/** Show an act and what it changed: on the tiles, in the strip and in the class list. */
export function report({ text, changed = [], summary = [], ...more }) {
	store.changed = new Map(changed.map(one => [one.id, one]));
	const count = summary.reduce((sum, one) => sum + one.count, 0);
	Object.assign(last, { text, count, summary, picture: undefined, problem: null, working: queue.length > 0, ...more });
	emit('changed');
	emit('acts');
}

/** Show a sentence of the server; `again` repeats the act that it refused. */
export function showProblem(text, again) {
	Object.assign(last, { problem: { text, again }, working: queue.length > 0 });
	emit('acts');
}

function enqueue(act) {
	act.key = identifier();
	act.restore = act.show ? showAtOnce(act.ids, act.show) : () => {};
	queue.push(act);
	if (act.text) report({ text: act.text, picture: store.pictures.get(act.ids?.[0]) });
	else emit('acts');
	const { promise, resolve } = Promise.withResolvers();
	act.done = resolve;
	send();
	return promise;
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
	if (!act.text) return; // it changed no label
	const { changed, summary } = answer;
	const known = changed.filter(one => store.pictures.has(one.id));
	keep(known.map(movedTo));
	setState(answer.state);
	report({ text: `Act ${answer.act}: ${act.text}`, changed, summary, act: answer.act, picture: last.picture });
	load([...known.map(one => one.id), ...(act.ids ?? [])].slice(0, 500), true).catch(() => {});
}

/** A picture after a change by the server. */
function movedTo({ id, from, to }) {
	const picture = { ...store.pictures.get(id), was: from };
	if (to?.startsWith('_')) return { ...picture, status: to.slice(1) };
	return { ...picture, label: to, status: isAside(picture) ? 'proposed' : picture.status };
}

function refuse(act, error) {
	act.restore();
	const text = error.status === 409 ? `Changed in another window: ${error.message}` : error.message;
	showProblem(text, () => enqueue(act));
	refreshState().catch(() => {});
}

/** Wait, with growing pauses, until the server answers again. */
async function waitForServer() {
	for (let attempt = 0; ; attempt += 1) {
		disconnected(RETRIES[Math.min(attempt, RETRIES.length - 1)]);
		await new Promise(resolve => {
			connection.retry = resolve;
			setTimeout(resolve, connection.next * 1000);
		});
		if (await answers()) return connected();
	}
}

/** Whether the server answers; a refusal is an answer, too. */
const answers = () =>
	refreshState().then(
		() => true,
		error => error instanceof Refused,
	);

function disconnected(next) {
	connection.lost ??= new Date();
	connection.next = next;
	emit('connection');
}
function connected() {
	if (connection.lost === null) return;
	connection.lost = null;
	emit('connection');
}
/** The stream of events broke while no act waits: find out whether the server is there. */
export async function checkConnection() {
	if (sending || connection.lost) return;
	sending = true;
	if (!(await answers())) await waitForServer();
	sending = false;
	send();
}

/** Give up the act that waits for the server, or that it refused, which waits no more. */
export function drop() {
	const act = connection.lost ? queue.pop() : undefined;
	act?.restore();
	act?.done(null);
	report({ text: 'The act was dropped' });
}

/** ` as NAME` if all have the same class. */
const common = names => (new Set(names).size === 1 ? ` as ${names[0]}` : '');
const pictures = ids => plural(ids.length, 'picture');
/** Send an act on pictures, which shows `change` on them at once. */
const act = (path, text, body, change, ids = body.ids) =>
	enqueue({ ids, text: `you ${text}`, body, show: change, send: given => write('POST', path, given) });
const given = name => () => ({ label: name, status: 'example', probability: 1 });

function usedClass(name) {
	store.lastClass = name;
	store.recent = [name, ...store.recent.filter(one => one !== name)];
}

export function label(ids, name) {
	usedClass(name);
	return act('label', `labeled ${pictures(ids)} as ${name}`, { ids, label: name }, given(name));
}
export function labelEach(labels) {
	const ids = Object.keys(labels).map(Number);
	const text = `labeled ${pictures(ids)}${common(Object.values(labels))}`;
	return act('label', text, { labels }, ({ id }) => given(labels[id])(), ids);
}
export const unlabel = ids =>
	act('label', `took the label of ${pictures(ids)} back`, { ids, label: null }, () => ({ status: 'proposed' }));
export const markUnknown = ids =>
	act('label', `marked ${pictures(ids)} unknown`, { ids, unknown: true }, () => ({ status: 'unknown' }));
export const markUnsure = ids =>
	act('label', `put ${pictures(ids)} aside`, { ids, unsure: true }, () => ({ status: 'unsure' }));
export function accept(ids) {
	const text = `accepted ${pictures(ids)}${common(ids.map(id => store.pictures.get(id)?.label))}`;
	return act('accept', text, { ids }, () => ({ status: 'accepted' }));
}
export function makeClass(name, ids = []) {
	usedClass(name);
	return act('class', `made the class ${name}`, { name, ids }, given(name));
}
/** Give pictures a class, which is made if there is none of this name. */
export const assign = (ids, name) => (classNamed(name) ? label(ids, name) : makeClass(name, ids));
export const undo = () => act('undo', 'undid the last act', {});
export const redo = () => act('redo', 'did the act again', {});
/** Save answers to an audit, which change no label before it is finished. */
export const answerAudit = (audit, answers) =>
	enqueue({ body: { audit, answers }, send: body => write('POST', 'audit', body) });
export const finishAudit = (audit, ids) => act('audit', 'finished the audit', { audit, finish: true }, null, ids);
export const changeClass = (name, change, text) =>
	enqueue({ text: `you ${text}`, body: { name, ...change }, send: body => write('PATCH', 'class', body) });
export const deleteClass = name =>
	enqueue({ text: `you deleted the class ${name}`, send: ({ act_id }) => remove('class', { name, act_id }) });
