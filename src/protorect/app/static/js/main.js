// Start the page: read the state, show the view of the address, listen to the server.

import { report, showProblem } from './acts.js';
import { Refused, Unreachable } from './api.js';
import './banners.js';
import './dialogs.js';
import { $, h } from './dom.js';
import { startEvents } from './events.js';
import { Grid } from './grid.js';
import './header.js';
import './nav.js';
import './strip.js';
import { show } from './router.js';
import { refreshState, store } from './store.js';
import './keys.js';
import './views/audit.js';
import './views/groups.js';
import './views/lists.js';
import './views/start.js';
import './views/unsure.js';

async function start() {
	try {
		await refreshState();
	} catch (error) {
		const text = error instanceof Refused ? error.message : 'The server does not answer. Start the command again.';
		$('#pictures').append(h('section.view', h('div.blank', h('h1', 'Not connected'), h('p', text))));
		return;
	}
	$('.skip').addEventListener('click', event => {
		event.preventDefault();
		Grid.refocus();
	});
	const { last } = store.state;
	report(last ? { text: `Act ${last.act}, the last one`, summary: last.summary, act: last.act } : { text: '' });
	await show();
	startEvents();
}

addEventListener('unhandledrejection', event => {
	if (event.reason instanceof Refused || event.reason instanceof Unreachable) showProblem(event.reason.message);
});
start();
