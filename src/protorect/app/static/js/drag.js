// Selecting by dragging a rectangle that begins in a gap between the pictures.

import { h, setPixels } from './dom.js';

const SLOP = 5; // pixels that the pointer must move

/** `select(top, bottom, left, right)` gets the rectangle in the coordinates of `box`. */
export function dragRectangle(view, box, select) {
	view.addEventListener('pointerdown', event => {
		if (event.button !== 0 || event.pointerType === 'touch' || event.target.closest('.tile, button, input')) return;
		if (event.offsetX > view.clientWidth) return; // the scroll bar
		const point = e => {
			const frame = box.getBoundingClientRect();
			return { x: e.clientX - frame.left, y: e.clientY - frame.top };
		};
		const from = point(event);
		let shape = null;
		const move = e => {
			const to = point(e);
			if (!shape && Math.hypot(to.x - from.x, to.y - from.y) < SLOP) return;
			shape ??= box.appendChild(h('div.rectangle'));
			const [left, right] = [Math.min(from.x, to.x), Math.max(from.x, to.x)],
				[top, bottom] = [Math.min(from.y, to.y), Math.max(from.y, to.y)];
			setPixels(shape, { x: left, y: top, w: right - left, h: bottom - top });
			select(top, bottom, left, right);
		};
		const end = () => {
			shape?.remove();
			removeEventListener('pointermove', move);
		};
		addEventListener('pointermove', move);
		addEventListener('pointerup', end, { once: true });
	});
}
