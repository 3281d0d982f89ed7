//! Reads and writes strings, numbers, times, names and errors exactly as Go's standard library and Kubernetes' `apimachinery`. All
//! messages that several parts of a server share are defined here, once.
//!
//! | module | decides | may use |
//! |---|---|---|
//! | [`go`] | what Go's standard library prints and reads | nothing of ours |
//! | [`names`] | names of objects, and beginnings of names | nothing of ours |
//! | [`labels`] | keys and values of labels, qualified names | names |
//! | [`field_error`] | what is wrong with one field, and how it is told | go |
//! | [`findings`] | how many mistakes are told, and of what size | field_error |
//! | [`status`] | `metav1.Status`: reasons and their codes, causes | go, field_error, findings |
//! | [`selector`] | label and field selectors: reading, matching | labels, status |
//! | [`diff`] | what differs between two texts | nothing of ours |
//! | [`suggest`] | what was meant by a name that nobody knows | nothing of ours |
//! | [`quantity`] | resource quantities: reading, canonical text, sums | nothing of ours |
//! | [`bounded`] | how many paths of findings are told, and how much of each | nothing of ours |
//! | [`pointer`] | what stands at a pointer of an object | nothing of ours |
//! | [`weight`] | what decoded values weigh, and how much of that a text may ask for | nothing of ours |
//! | [`yaml`] | YAML: reading with positions and within bounds, writing | bounded, go, weight |
//!
//! Independent of CEL, policies and servers; reads no file and no clock.
//!
//! ```
//! use admit_apimachinery::go;
//!
//! assert_eq!(go::quote("a\u{200b}b"), r#""a\u200bb""#);
//! ```
//!
//! [`pointer`]: mod@pointer
#![deny(missing_docs)]
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

pub mod bounded;
pub mod diff;
pub mod field_error;
pub mod findings;
pub mod go;
pub mod labels;
pub mod names;
pub mod pointer;
pub mod quantity;
pub mod selector;
pub mod status;
pub mod suggest;
pub mod weight;
pub mod yaml;

/// The examples of the readme.
#[cfg(doctest)]
#[doc = include_str!("README.md")]
struct Readme;
