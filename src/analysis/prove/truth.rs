//! Names the functions whose result is always a boolean: what is not known of one can be guessed.

/// Reports whether a function returns a boolean for all arguments.
pub(super) fn is_truth(function: &str) -> bool {
    matches!(
        function,
        "_==_"
            | "_!=_"
            | "_<_"
            | "_<=_"
            | "_>_"
            | "_>=_"
            | "@in"
            | "_in_"
            | "!_"
            | "_&&_"
            | "_||_"
            | "matches"
            | "startsWith"
            | "endsWith"
            | "contains"
            | "hasValue"
    )
}
