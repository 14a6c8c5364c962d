// What the server tells without being asked: acts of other windows, probabilities, progress.

import { checkConnection, last, report, unsaved } from './acts.js';
import { listen } from './api.js';
import { Grid } from './grid.js';
import { current, show } from './router.js';
import { forgetExcept, load, refreshState, setState, store } from './store.js';

const QUIET = 300; // milliseconds to collect events before the page reads again
let pending = null;

/** Read again what is in view; what is not in view is read when it is needed. */
async function readAgain() {
	pending = null;
	await refreshState();
	if (current.waiting) await show();
	const inView = Grid.current ? Grid.current.page() : (current.targets?.() ?? []);
	forgetExcept(inView);
	await load(inView.slice(0, 500), true);
}
function soon() {
	pending ??= setTimeout(() => readAgain().catch(() => {}), QUIET);
}

function changedElsewhere({ revision, act, changed, summary }) {
	if (unsaved()) return; // the answer to our own act brings the news
	// The state may have been read meanwhile, so its revision does not say whether the act is known.
	if (act !== null && act > (last.act ?? 0)) report({ text: 'Changed in another window', changed, summary, act });
	if (revision > store.state.revision) soon();
}

function progressed(progress) {
	const before = store.state.progress;
	setState({ ...store.state, progress, embedded: progress ? progress.done : store.state.embedded });
	if (!progress && before) soon();
}

export function startEvents() {
	listen(store.state.revision, {
		change: changedElsewhere,
		probabilities: soon,
		progress: progressed,
		lost: () => checkConnection(),
		found: soon, // probabilities and progress may have come before the page listened
	});
}
