// The header: project, search, whether all is saved, expected accuracy, light or dark.

import { connection, unsaved } from './acts.js';
import { openExport, openHelp } from './dialogs.js';
import { $, count, h, icon, percent } from './dom.js';
import { current, go } from './router.js';
import { toggleTheme } from './settings.js';
import { classNamed, on, store } from './store.js';

function drawSaved() {
	const lost = connection.lost !== null;
	const text = lost ? 'Not connected' : unsaved() ? 'Saving' : 'Saved';
	const saved = $('#saved');
	saved.className = lost ? 'state off desk' : 'state desk';
	saved.replaceChildren(icon(lost ? 'warn' : unsaved() ? 'work' : 'check'), h('span', text));
}

function drawState() {
	const { state } = store;
	$('#project').textContent = state.project.name;
	const accuracy = state.expected_accuracy;
	const about = $('#accuracy');
	about.hidden = accuracy === null;
	if (accuracy) {
		about.textContent = `About ${percent(accuracy.value)} right`;
		about.title = `Expected share of right labels, ${percent(accuracy.low)} to ${percent(accuracy.high)}`;
	}
}

function drawTitle() {
	const one = current.kind === 'class' ? classNamed(current.parameters.name) : null;
	$('#title-name').textContent = current.title;
	$('#title-count').textContent = one
		? one.proposed
			? `${count(one.proposed)} left`
			: 'done'
		: current.place?.() || '';
	$('#audit-link').toggleAttribute('aria-current', current.kind === 'audit');
}

let pause = null;
function search(event) {
	clearTimeout(pause);
	const text = $('#search').value.trim();
	if (event.type === 'input')
		pause = setTimeout(() => {
			if (text) go('search', { text });
		}, 250);
	else if (event.key === 'Enter' && text) {
		go('search', { text });
		$('#search').blur();
	}
}

export function startHeader() {
	$('#theme').addEventListener('click', toggleTheme);
	$('#help-button').addEventListener('click', openHelp);
	$('#export-button').addEventListener('click', openExport);
	$('#menu-button').addEventListener('click', () => $('#classes').classList.toggle('open'));
	$('#search').addEventListener('input', search);
	$('#search').addEventListener('keydown', search);
}

on('acts connection state', drawSaved);
on('state', drawState);
on('state view pick', drawTitle);
