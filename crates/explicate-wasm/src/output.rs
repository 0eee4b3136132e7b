//! Result tables as text, and their hash.

use explicate_build::tables::{Data, Table, Tables};

/// The tables by name.
pub fn named(tables: &Tables) -> [(&'static str, &Table); 4] {
    [("flows", &tables.flows), ("links", &tables.links), ("samples", &tables.samples), ("run", &tables.run)]
}

/// A hash of all tables to the last bit, 16 hexadecimal digits (FNV-1a of names, lengths and values).
pub fn hash(tables: &Tables) -> String {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    let mut take = |bytes: &[u8]| {
        for byte in bytes {
            state = (state ^ *byte as u64).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    for (name, table) in named(tables) {
        take(name.as_bytes());
        for (column, data) in &table.columns {
            take(column.name.as_bytes());
            take(&(data.len() as u64).to_le_bytes());
            match data {
                Data::Str(values) => values.iter().for_each(|v| {
                    take(&(v.len() as u64).to_le_bytes());
                    take(v.as_bytes());
                }),
                // Null has one form.
                Data::F64(values) => values.iter().for_each(|v| {
                    let bits = if v.is_nan() { u64::MAX } else { v.to_bits() };
                    take(&bits.to_le_bytes());
                }),
                Data::U64(values) => values.iter().for_each(|v| take(&v.to_le_bytes())),
            }
        }
    }
    format!("{state:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_that_need_quotes_have_them() {
        let mut tables = Tables::default();
        tables.run.push([0u64.into(), "a \"b\", c".into(), 7u64.into(), "1".into(), "x = 1\ny = 2".into()]);
        let text = tables.run.csv();
        assert_eq!(text, "run,name,seed,version,scenario\n0,\"a \"\"b\"\", c\",7,1,\"x = 1\ny = 2\"\n");
    }

    #[test]
    fn a_single_bit_changes_the_hash() {
        let with = |seed: u64| {
            let mut tables = Tables::default();
            tables.run.push([0u64.into(), "a".into(), seed.into(), "1".into(), "".into()]);
            hash(&tables)
        };
        assert_eq!(with(1), with(1));
        assert_ne!(with(1), with(2));
    }
}
