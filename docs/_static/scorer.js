// Sphinx's own scores. Names in which the query is only the inside of a word, such as "ratio" in "duration", are
// left out if anything else is found.
const INSIDE = -100;
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: ([, title, , , score, , kind]) => {
    const query = new URLSearchParams(location.search).get("q") || "";
    const words = title.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
    const begins = (word) => words.split(/[^a-z0-9]+/).some((each) => each.startsWith(word));
    const isName = kind === "object" || kind === "title";
    const isInside = (word) => words.includes(word) && !begins(word);
    return isName && query.toLowerCase().split(/\s+/).some(isInside) ? score + INSIDE : score;
  },
};
// This file is read after Sphinx's search and before the index, so that no query has run yet.
const performSearch = Search._performSearch;
Search._performSearch = (...terms) => {
  const results = performSearch(...terms);
  const whole = results.filter(([, , , , score]) => score > INSIDE / 2);
  return whole.length ? whole : results;
};
