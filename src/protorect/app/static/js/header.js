// The header: project, search, whether all is saved, expected accuracy, light or dark.

import { connection, unsaved } from './acts.js';
import { openExport, openHelp } from './dialogs.js';
import { $, count, h, icon, percent, say } from './dom.js';
import { current, go } from './router.js';
import { toggleTheme } from './settings.js';
import { classNamed, on, store } from './store.js';

function drawSaved() {
	const lost = connection.lost !== null;
	const text = lost ? 'Not connected' : unsaved() ? 'Saving' : 'Saved';
	const saved = $('#saved');
	saved.classList.toggle('off', lost);
	saved.replaceChildren(icon(lost ? 'warn' : unsaved() ? 'work' : 'check'), h('span', text));
}

function drawState() {
	const { state } = store;
	say({ project: state.project.name });
	const accuracy = state.expected_accuracy;
	const about = $('#accuracy');
	about.hidden = accuracy === null;
	if (accuracy) {
		about.textContent = `About ${percent(accuracy.value)} right`;
		about.title = `Expected share of right labels, ${percent(accuracy.low)} to ${percent(accuracy.high)}`;
	}
}

function drawTitle() {
	const one = current.kind === 'class' && classNamed(current.parameters.name);
	const left = one && (one.proposed ? `${count(one.proposed)} left` : 'done');
	say({ 'title-name': current.title, 'title-count': left || current.place?.() || '' });
	$('#audit-link').toggleAttribute('aria-current', current.kind === 'audit');
}

let pause = null;
function search(event) {
	const { type, key } = event;
	const text = $('#search').value.trim(),
		find = () => text && go('search', { text });
	if (type === 'keydown' && key !== 'Enter') return;
	clearTimeout(pause);
	if (type === 'input') pause = setTimeout(find, 250);
	else {
		event.preventDefault(); // Enter accepts nothing
		$('#search').blur(); // focus goes to what is found
		find();
	}
}

$('#theme').addEventListener('click', toggleTheme);
$('#help-button').addEventListener('click', openHelp);
$('#export-button').addEventListener('click', openExport);
$('#menu-button').addEventListener('click', () => $('#classes').classList.toggle('open'));
$('#search').addEventListener('input', search);
$('#search').addEventListener('keydown', search);

on('acts connection state', drawSaved);
on('state', drawState);
on('state view pick', drawTitle);
