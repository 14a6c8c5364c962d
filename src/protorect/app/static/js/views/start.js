// The first labels of a project without examples: pictures that differ, to be named.

import { assign } from '../acts.js';
import { read } from '../api.js';
import { button, h, nameField, nameForm, plural } from '../dom.js';
import { openDetails } from '../drawer.js';
import { Grid } from '../grid.js';
import { go, view } from '../router.js';
import { keep, store } from '../store.js';
import { blank, frame, zoomSlider } from './parts.js';

const SHOWN = 48;

view('start', async ({ offset = 0 }) => {
	const { pictures } = await read('suggest', { n: SHOWN, offset });
	keep(pictures);
	const title = store.state.classes.length ? 'Name more classes' : 'Name your first classes';
	const input = nameField('input.field.name', { id: 'first-name' });
	const label = h('label.what', { for: 'first-name' });
	const ask = (n = 0) => {
		label.textContent = n
			? `${n} selected. What ${n === 1 ? 'does it' : 'do they'} show?`
			: 'Select pictures that show the same thing';
	};
	ask();
	const grid = new Grid({
		name: 'Pictures that differ from each other',
		sections: [{ ids: pictures.map(picture => picture.id) }],
		onopen: openDetails,
		onpick: () => ask(grid.selected.size),
	});
	const form = nameForm('form.acts', {
		input,
		text: 'Make class',
		kind: 'first',
		named: name => {
			void assign(grid.targets(), name);
			input.value = '';
			grid.clear();
			grid.focus(grid.at); // for the next pictures
		},
		before: label,
		after: [
			button('Clear', { key: 'Esc', keys: 'Escape', kind: 'plain', onclick: () => grid.clear() }),
			h('span.hint.push', 'One picture per class is enough to begin.'),
		],
	});
	const counts = `${plural(pictures.length, 'picture')}, chosen to differ from each other`;
	const others = { offset: pictures.length < SHOWN ? 0 : Number(offset) + SHOWN };
	const next = () => button(`Show ${SHOWN} others`, { kind: 'plain desk', onclick: () => go('start', others) });
	const element = frame(
		{ name: 'First labels', title, counts, controls: [store.state.pictures > SHOWN && next(), zoomSlider()] },
		pictures.length
			? [form, grid.element]
			: blank({ mark: 'work', title: 'The pictures are being read', text: 'The first ones appear in a moment.' }),
	);
	return {
		element,
		grid,
		title,
		// A letter typed after selecting begins the name.
		keys: {
			Enter: () => input.focus(),
			letter: () => {
				if (grid.selected.size) input.focus();
				return grid.selected.size > 0;
			},
		},
		focus: () => grid.focus(0),
		waiting: !pictures.length,
	};
});
