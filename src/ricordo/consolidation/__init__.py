"""Knowledge that evolves: what a new fact does to older ones, and what people decide about them."""
