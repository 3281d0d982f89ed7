//! CyndiPipelines against a real PostgreSQL. Tests are named after the rows of the fact sheet.

mod database;
