//! A checked expression to a program: names, fields and overloads resolved once, constants folded.
