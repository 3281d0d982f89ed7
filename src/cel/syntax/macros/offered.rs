//! Lists the macros that CEL and Kubernetes offer, by library.

use super::{
    Macro, Quantifier, filter, has, map, opt_flat_map, opt_map, quantify, sort_by, transform_list,
    transform_map, transform_map_entry,
};

/// The macros of the language.
pub const STANDARD: &[Macro] = &[
    Macro {
        name: "has",
        receiver: false,
        args: Some(1),
        doc: "has(a.b): whether the field `b` is set.",
        expand: has,
    },
    Macro {
        name: "all",
        receiver: true,
        args: Some(2),
        doc: "list.all(x, test): whether the test holds for every element of a list, or key of a map.",
        expand: |e, s| quantify(e, s, Quantifier::All),
    },
    Macro {
        name: "exists",
        receiver: true,
        args: Some(2),
        doc: "list.exists(x, test): whether the test holds for at least one element of a list, or key of a map.",
        expand: |e, s| quantify(e, s, Quantifier::Exists),
    },
    Macro {
        name: "exists_one",
        receiver: true,
        args: Some(2),
        doc: "list.exists_one(x, test): whether the test holds for exactly one element of a list, or key of a map.",
        expand: |e, s| quantify(e, s, Quantifier::ExistsOne),
    },
    Macro {
        name: "map",
        receiver: true,
        args: Some(2),
        doc: "list.map(x, value): the list of what the expression makes of each element, or key of a map.",
        expand: map,
    },
    Macro {
        name: "map",
        receiver: true,
        args: Some(3),
        doc: "list.map(x, test, value): the list of what the expression makes of the elements for which the test holds.",
        expand: map,
    },
    Macro {
        name: "filter",
        receiver: true,
        args: Some(2),
        doc: "list.filter(x, test): the list of the elements, or keys of a map, for which the test holds.",
        expand: filter,
    },
];

/// The macros of optional values.
pub const OPTIONAL: &[Macro] = &[
    Macro {
        name: "optMap",
        receiver: true,
        args: Some(2),
        doc: "optional.optMap(x, value): what the expression makes of the value, if there is one; else no value.",
        expand: opt_map,
    },
    Macro {
        name: "optFlatMap",
        receiver: true,
        args: Some(2),
        doc: "optional.optFlatMap(x, optional): the optional value that the expression makes of the value, if there is one.",
        expand: opt_flat_map,
    },
];

/// The macros with an index or key and a value.
pub const TWO_VARIABLE: &[Macro] = &[
    Macro {
        name: "all",
        receiver: true,
        args: Some(3),
        doc: "list.all(i, x, test): whether the test holds for every index and element of a list, or key and value of a map.",
        expand: |e, s| quantify(e, s, Quantifier::All),
    },
    Macro {
        name: "exists",
        receiver: true,
        args: Some(3),
        doc: "list.exists(i, x, test): whether the test holds for at least one index and element, or key and value.",
        expand: |e, s| quantify(e, s, Quantifier::Exists),
    },
    Macro {
        name: "exists_one",
        receiver: true,
        args: Some(3),
        doc: "list.exists_one(i, x, test): whether the test holds for exactly one index and element, or key and value.",
        expand: |e, s| quantify(e, s, Quantifier::ExistsOne),
    },
    Macro {
        name: "existsOne",
        receiver: true,
        args: Some(3),
        doc: "list.existsOne(i, x, test): whether the test holds for exactly one index and element, or key and value.",
        expand: |e, s| quantify(e, s, Quantifier::ExistsOne),
    },
    Macro {
        name: "transformList",
        receiver: true,
        args: Some(3),
        doc: "list.transformList(i, x, value): the list of what the expression makes of each index and element, or key and value.",
        expand: transform_list,
    },
    Macro {
        name: "transformList",
        receiver: true,
        args: Some(4),
        doc: "list.transformList(i, x, test, value): the same of those for which the test holds.",
        expand: transform_list,
    },
    Macro {
        name: "transformMap",
        receiver: true,
        args: Some(3),
        doc: "map.transformMap(k, x, value): the map with what the expression makes of each value under its key, or index.",
        expand: transform_map,
    },
    Macro {
        name: "transformMap",
        receiver: true,
        args: Some(4),
        doc: "map.transformMap(k, x, test, value): the same of those for which the test holds.",
        expand: transform_map,
    },
    Macro {
        name: "transformMapEntry",
        receiver: true,
        args: Some(3),
        doc: "map.transformMapEntry(k, x, {key: value}): the map of the entries that the expression makes.",
        expand: transform_map_entry,
    },
    Macro {
        name: "transformMapEntry",
        receiver: true,
        args: Some(4),
        doc: "map.transformMapEntry(k, x, test, {key: value}): the same of those for which the test holds.",
        expand: transform_map_entry,
    },
];

/// The macro of cel-go's lists library.
pub const LISTS: &[Macro] = &[Macro {
    name: "sortBy",
    receiver: true,
    args: Some(2),
    doc: "list.sortBy(x, key): the elements in the order of what the expression makes of each.",
    expand: sort_by,
}];
