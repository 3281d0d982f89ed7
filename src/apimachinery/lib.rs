//! Reads and writes strings, numbers, times, names and errors exactly as Go's standard library and Kubernetes' `apimachinery`. All
//! messages that several parts of a server share are defined here, once.
//!
//! | module | decides | may use |
//! |---|---|---|
//! | [`go`] | what Go's standard library prints and reads | nothing of ours |
//! | [`names`] | names of objects, and beginnings of names | nothing of ours |
//! | [`labels`] | keys and values of labels, qualified names | names |
//! | [`field_error`] | an error about one field, and its message | go |
//! | [`findings`] | how many errors are reported, and of what size | field_error |
//! | [`status`] | `metav1.Status`: reasons and their codes, causes | go, field_error, findings |
//! | [`selector`] | label and field selectors: parsing, matching | labels, status |
//! | [`diff`] | the difference of two texts | nothing of ours |
//! | [`suggest`] | which known name is meant by an unknown one | nothing of ours |
//! | [`quantity`] | resource quantities: parsing, canonical text, sums | nothing of ours |
//! | [`bounded`] | how many paths of errors are reported, and how much of each | nothing of ours |
//! | [`pointer`] | the value at a JSON pointer | nothing of ours |
//! | [`weight`] | the memory of decoded values, and its limit for a text | nothing of ours |
//! | [`yaml`] | YAML: parsing with positions and limits, writing | bounded, go, weight |
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
