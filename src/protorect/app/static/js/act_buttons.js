// Buttons that act on the selected pictures, or on the one in focus.

import * as actions from './actions.js';
import { button, cap, h, percent } from './dom.js';

const named = (text, key, onclick) => attributes => button(text, { key, onclick, ...attributes });
export const chooseButton = named('Choose class…', 'C', actions.chooseClass);
export const newButton = named('New class…', 'N', actions.newClass);
export const unknownButton = named('Mark unknown', 'X', actions.unknown);
export const unsureButton = named('Mark unsure', 'U', actions.unsure);
export const similarButton = named('Find similar', 'F', actions.findSimilar);

/** The buttons of a picture's likeliest classes; `more(label)` is shown below each. */
export const choices = (picture, kind, more = () => null) =>
	(picture.top ?? []).map(({ label, probability }, rank) =>
		h(
			'button',
			{ class: rank ? kind : `${kind} top1`, 'aria-keyshortcuts': 'ASD'[rank], onclick: () => actions.likeliest(rank) },
			cap('ASD'[rank]),
			h('span.name', label),
			h('span.v', percent(probability)),
			h('span.meter', h('i', { vars: { w: `${100 * probability}%` } })),
			more(label),
		),
	);
