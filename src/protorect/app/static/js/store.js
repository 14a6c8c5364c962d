// What the page knows: the project's state, the pictures read so far, the last act's changes.

import { read } from './api.js';

const CHUNK = 200; // pictures per request; the server takes up to 500

export const store = {
	state: null, // the answer of GET /api/state
	pictures: new Map(), // id -> picture
	changed: new Map(), // id -> {from, to}: what the last act changed, until the next one
	lastClass: null, // the class used last, for R
	recent: [], // names of classes, the latest first
};

const listeners = new Map();

/** Call `run` whenever something of these kinds changes: state, pictures, changed, acts, connection, view, pick. */
export function on(kinds, run) {
	for (const kind of kinds.split(' ')) listeners.set(kind, [...(listeners.get(kind) ?? []), run]);
}
export function emit(kind, detail) {
	for (const run of listeners.get(kind) ?? []) run(detail);
}

export function setState(state) {
	if (store.state && state.revision < store.state.revision) return;
	store.state = { project: store.state?.project, ...state }; // acts answer without it
	emit('state');
}

export async function refreshState() {
	setState(await read('state'));
}

export const classNamed = name => store.state.classes.find(one => one.name === name);
export const classWithKey = key => store.state.classes.find(one => one.key === key);
export const isAside = picture => ['unsure', 'unknown'].includes(picture.status);
/** The class of a picture, or the group that it is in instead. */
export const groupOf = picture => (isAside(picture) ? `_${picture.status}` : picture.label);
export const checkedOf = one => one.examples + one.accepted;
/** The sum of a number over all classes. */
export const total = numberOf => store.state.classes.reduce((sum, one) => sum + numberOf(one), 0);
export const proposedOf = one => one.proposed;

export function keep(pictures) {
	for (const picture of pictures) store.pictures.set(picture.id, picture);
	const ids = pictures.map(picture => picture.id);
	if (ids.length) emit('pictures', ids);
}

const loading = new Map(); // id -> request

async function readChunk(ids) {
	try {
		keep((await read('pictures', { ids: ids.join(','), limit: ids.length })).pictures);
	} finally {
		ids.forEach(id => loading.delete(id));
	}
}

/** Read the pictures of these ids that are not known yet, or all of them if `again`. */
export async function load(ids, again = false) {
	const wanted = ids.filter(id => again || !store.pictures.has(id));
	const missing = wanted.filter(id => !loading.has(id));
	for (let start = 0; start < missing.length; start += CHUNK) {
		const chunk = missing.slice(start, start + CHUNK);
		const request = readChunk(chunk);
		chunk.forEach(id => loading.set(id, request));
	}
	await Promise.all(wanted.map(id => loading.get(id))); // also what others asked for
}

/** Forget pictures outside the view, which may have changed; they are read again when needed. */
export function forgetExcept(ids) {
	const keepIds = new Set(ids);
	for (const id of store.pictures.keys()) if (!keepIds.has(id)) store.pictures.delete(id);
}

/** Show a change at once; the returned function restores the pictures as they were. */
export function showAtOnce(ids, change) {
	const before = ids.map(id => store.pictures.get(id)).filter(Boolean);
	keep(before.map(picture => ({ ...picture, ...change(picture) })));
	return () => keep(before);
}
