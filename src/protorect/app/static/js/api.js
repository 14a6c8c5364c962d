// The HTTP API of the server: reading, writing, and its stream of events.

/** The server refused a request; the message is its sentence. */
export class Refused extends Error {
	constructor(status, message) {
		super(message);
		this.status = status;
	}
}
/** The server gave no answer. */
export class Unreachable extends Error {}

const PATIENCE = 10_000; // milliseconds until a request counts as lost

// The address that the command prints has the token; afterwards this tab keeps it.
function takeToken() {
	const address = new URL(location.href);
	const given = address.searchParams.get('token');
	if (given) {
		sessionStorage.setItem('token', given);
		address.searchParams.delete('token');
		history.replaceState(null, '', address);
	}
	return sessionStorage.getItem('token') ?? '';
}
const token = takeToken();

async function request(method, path, body) {
	const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
	const signal = AbortSignal.timeout(PATIENCE);
	let response;
	try {
		response = await fetch(path, { method, headers, body: JSON.stringify(body), signal });
	} catch (error) {
		throw new Unreachable(error.message);
	}
	let answer = {};
	try {
		answer = await response.json();
	} catch {
		if (response.ok) throw new Unreachable('the answer was cut off');
	}
	if (response.ok) return answer;
	const sentence = answer.error ?? response.statusText;
	if (response.status >= 500 && response.status !== 507) throw new Unreachable(sentence);
	throw new Refused(response.status, sentence);
}

/** The part of an address after `?`; what is not given is left out. */
export function query(parameters) {
	const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== '');
	return given.length ? `?${new URLSearchParams(given)}` : '';
}

export const read = (path, parameters = {}) => request('GET', `/api/${path}${query(parameters)}`);
export const write = (method, path, body) => request(method, `/api/${path}`, body);
export const remove = (path, parameters) => request('DELETE', `/api/${path}${query(parameters)}`);

export const thumbnailUrl = picture => `/api/thumbnail/${picture.id}?v=${picture.version}`;
export const pictureUrl = picture => `/api/picture/${picture.id}?v=${picture.version}`;

/** Listen to what happens after a revision; `lost` and `found` say when the connection breaks and is there. */
export function listen(since, { lost, found, ...events }) {
	const source = new EventSource(`/api/events?since=${since}`);
	for (const [kind, run] of Object.entries(events)) source.addEventListener(kind, event => run(JSON.parse(event.data)));
	source.onopen = found;
	source.onerror = lost;
}
