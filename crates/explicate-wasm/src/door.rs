//! The functions that JavaScript calls. Lists of texts are passed as JSON.

use std::collections::BTreeMap;

use serde_json::json;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::output;
use crate::session::{Recipe, Session};

/// Version of the simulator.
#[wasm_bindgen]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_string()
}

fn recipe(text: &str, origin: &str, files: &str, overrides: &str, changes: &str) -> Result<Recipe, String> {
    let files: BTreeMap<String, String> = if files.is_empty() {
        BTreeMap::new()
    } else {
        serde_json::from_str(files).map_err(|e| format!("the list of files is not JSON: {e}"))?
    };
    let overrides: Vec<(String, String)> = if overrides.is_empty() {
        Vec::new()
    } else {
        serde_json::from_str(overrides).map_err(|e| format!("the list of settings is not JSON: {e}"))?
    };
    Recipe::new(text, origin, &files, &overrides, changes)
}

/// The tables of all runs as JSON: `hash`, and the CSV texts `flows`, `links`, `samples` and `run`.
///
/// # Errors
/// The problems of the scenario, line by line.
#[wasm_bindgen]
pub fn tables(text: &str, origin: &str, files: &str, overrides: &str, changes: &str) -> Result<String, String> {
    let tables = recipe(text, origin, files, overrides, changes)?.tables()?;
    let mut all = json!({ "hash": output::hash(&tables) });
    for (name, table) in output::named(&tables) {
        all[name] = table.csv().into();
    }
    Ok(all.to_string())
}

/// The hash of the tables alone.
///
/// # Errors
/// The problems of the scenario, line by line.
#[wasm_bindgen]
pub fn hash(text: &str, origin: &str, files: &str, overrides: &str, changes: &str) -> Result<String, String> {
    recipe(text, origin, files, overrides, changes)?.tables().map(|tables| output::hash(&tables))
}

/// Runs once and returns the number of packets carried over one link: for measuring speed.
///
/// # Errors
/// The problems of the scenario, line by line.
#[wasm_bindgen]
pub fn hops(text: &str) -> Result<f64, String> {
    recipe(text, "speed", "", "", "")?.hops().map(|hops| hops as f64)
}

/// A run that a page shows, see [`Session`].
#[wasm_bindgen]
pub struct Lane(Session);

#[wasm_bindgen]
impl Lane {
    /// Reads a scenario. Files and overrides are JSON, changes too.
    ///
    /// # Errors
    /// The problems of the scenario, line by line.
    #[wasm_bindgen(constructor)]
    pub fn new(text: &str, origin: &str, files: &str, overrides: &str, changes: &str) -> Result<Lane, String> {
        Session::new(recipe(text, origin, files, overrides, changes)?).map(Lane)
    }
    /// See [`Session::describe`].
    pub fn describe(&self) -> String {
        self.0.describe()
    }
    /// See [`Session::now`].
    pub fn now(&self) -> f64 {
        self.0.now()
    }
    /// See [`Session::is_done`].
    pub fn is_done(&self) -> bool {
        self.0.is_done()
    }
    /// See [`Session::advance`].
    pub fn advance(&mut self, seconds: f64, observed: bool) {
        self.0.advance(seconds, observed);
    }
    /// See [`Session::packets`].
    pub fn packets(&self, links: &[u32], most: u32) -> Vec<f32> {
        self.0.packets(links, most as usize)
    }
    /// See [`Session::links`].
    pub fn links(&self, links: &[u32]) -> Vec<f64> {
        self.0.links(links)
    }
    /// See [`Session::samples`].
    pub fn samples(&mut self) -> Vec<f64> {
        self.0.samples()
    }
    /// Names of variables as JSON.
    pub fn variables(&self) -> String {
        json!(self.0.variables()).to_string()
    }
}
