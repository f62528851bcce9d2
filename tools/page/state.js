// What is looked at. It stands behind the # of the address as "map,layer=3,head=5", with defaults left out.
const VIEWS = {
  head: 'Head view', model: 'Model view', neuron: 'Neuron view', map: 'Heat map',
};
const DEFAULTS = {
  layer: 0,        // the model's numbers, also where --layers and --heads kept only some
  head: 0,         // of the views that show one head
  heads: 'all',    // of the head view: "all", "none" or "0.3.5"
  token: '',       // what is held, as the picture counts: row "4", column ".7", cell "4.7"
  text: 0,
  beside: -1,      // second text; -1: none
  filter: 'all',   // aa ab ba bb
  hide: '',        // "special", "punctuation", "special.punctuation"
  words: 0,
  sort: 'number',  // entropy, distance
  min: 0.01,       // lines are drawn from this weight on
  open: '',        // the head that is enlarged in the model view: "3.5"
  theme: 'auto',   // light, dark
};
