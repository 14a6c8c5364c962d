// What the server tells without being asked: acts of other windows, probabilities, progress.

import { checkConnection, last, unsaved } from './acts.js';
import { listen } from './api.js';
import { Grid } from './grid.js';
import { current, show } from './router.js';
import { emit, forgetExcept, load, refreshState, setState, store } from './store.js';

const QUIET = 300; // milliseconds to collect events before the page reads again
let pending = null;

/** Read again what is in view; what is not in view is read when it is needed. */
async function readAgain() {
	pending = null;
	await refreshState();
	const inView = Grid.current ? Grid.current.page() : (current.targets?.() ?? []);
	forgetExcept(inView);
	await load(inView.slice(0, 500), true);
}
function soon() {
	pending ??= setTimeout(() => readAgain().catch(() => {}), QUIET);
}

function changed(event) {
	// Our own acts were answered already; while one is on its way, its answer brings the news.
	if (unsaved() || event.revision <= store.state.revision) return;
	if (event.act !== null) {
		store.changed = new Map(event.changed.map(one => [one.id, one]));
		Object.assign(last, {
			text: 'Changed in another window',
			count: event.changed.length,
			summary: event.summary,
			thumbnail: null,
			act: event.act,
			problem: null,
		});
		emit('changed');
		emit('acts');
	}
	soon();
}

function progressed(progress) {
	const before = store.state.progress;
	setState({ ...store.state, progress, embedded: progress ? progress.done : store.state.embedded });
	if (!progress && before) soon();
	if (current.waiting && progress?.done) void show();
}

export function startEvents() {
	listen(store.state.revision, {
		change: changed,
		probabilities: soon,
		progress: progressed,
		lost: () => checkConnection(),
		found: soon, // probabilities and progress may have come before the page listened
	});
}

/** An audit was finished: its corrections are an act like any other. */
export async function refreshAfterAudit(result) {
	if (result.changed) {
		store.changed = new Map(result.changed.map(one => [one.id, one]));
		Object.assign(last, {
			text: 'Finished the audit and applied its corrections',
			count: result.changed.length,
			summary: result.summary,
			act: result.act,
			thumbnail: null,
		});
	}
	forgetExcept([]);
	await refreshState();
	emit('changed');
	emit('acts');
}
