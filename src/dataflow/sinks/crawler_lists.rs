//! The avoid list as crawlers take it, while tables are made: on the local disk where memory has a bound.

use bincode::Options;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::applications::heritrix::SurtRules;
use crate::applications::prefixes::Prefix;
use crate::dataflow::reading::byte_lists::{ByteLists, ByteReader};
use crate::dataflow::reading::item_record::codec;
use crate::error::Result;
use crate::storage::spill_file::Disk;

/// What covers the pages to skip and no other, by URL and for Heritrix, host by host.
///
/// # Memory
/// 4 bytes a host; and all texts where there is no disk.
#[derive(Debug, Default)]
pub struct CrawlerLists {
    prefixes: ByteLists,
    surt_rules: ByteLists,
    /// Numbers of hosts, by their first prefixes.
    order: Vec<u32>,
    /// Prefixes that are no whole URLs.
    pub wide: u64,
}

impl CrawlerLists {
    /// None yet.
    ///
    /// # Errors
    /// As [`ByteLists::on`].
    pub fn on(disk: Option<&Disk>) -> Result<CrawlerLists> {
        let lists = || Ok(disk.map(ByteLists::on).transpose()?.unwrap_or_default());
        Ok(CrawlerLists { prefixes: lists()?, surt_rules: lists()?, ..CrawlerLists::default() })
    }

    /// Takes those of hosts, which have one prefix at least, from `hosts`; each is handed over once.
    ///
    /// # Errors
    /// That of `hosts`, and those of the disk.
    pub fn fill(
        &mut self,
        hosts: impl FnOnce(&mut dyn FnMut((Vec<Prefix>, SurtRules)) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let mut firsts: Vec<(String, u32)> = Vec::new();
        hosts(&mut |(prefixes, surt_rules)| {
            firsts.push((prefixes[0].prefix.clone(), firsts.len() as u32));
            self.wide += prefixes.iter().filter(|prefix| !prefix.single).count() as u64;
            self.prefixes.push(&encode(&prefixes))?;
            self.surt_rules.push(&encode(&surt_rules))
        })?;
        firsts.sort_unstable();
        self.order = firsts.into_iter().map(|(_, number)| number).collect();
        Ok(())
    }

    /// By URL, ascending.
    ///
    /// # Errors
    /// Those of the disk.
    ///
    /// # Memory
    /// All of them.
    pub fn prefixes(&self) -> Result<Vec<Prefix>> {
        let (mut reader, mut all) = (self.prefixes.reader(), Vec::new());
        for number in 0..self.prefixes.len() {
            all.append(&mut decode::<Vec<Prefix>>(&mut reader, number)?);
        }
        all.sort_unstable_by(|x, y| x.prefix.cmp(&y.prefix));
        Ok(all)
    }

    /// For Heritrix, a set a host, in the order of their first prefixes.
    ///
    /// # Errors
    /// Those of the disk.
    ///
    /// # Memory
    /// All of them.
    pub fn surt_rules(&self) -> Result<Vec<SurtRules>> {
        let mut reader = self.surt_rules.reader();
        self.order.iter().map(|&number| decode(&mut reader, number as usize)).collect()
    }
}

/// The bytes of what a host has.
pub(super) fn encode(value: &impl Serialize) -> Vec<u8> {
    codec().serialize(value).expect("plain values go into memory")
}

/// What a host has, by its number.
pub(super) fn decode<T: DeserializeOwned>(reader: &mut ByteReader<'_>, number: usize) -> Result<T> {
    Ok(codec().deserialize(reader.get(number)?).expect("it is as it was written"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lists_come_back_in_order_from_memory_and_from_the_disk(
            hosts in prop::collection::btree_map("[a-d]{1,3}", ("[a-z]{0,9}", 1usize..4), 0..9), times in 1usize..20_000
        ) {
            let text = |host: &String, path: &String, at: usize| format!("http://{host}.example/{at}{}", path.repeat(times / at));
            let prefix = |prefix: String| Prefix { single: prefix.len().is_multiple_of(2), prefix, pages: 1, bytes: 2 };
            let sets = hosts.iter().map(|(host, (path, count))| {
                let texts: Vec<String> = (1..=*count).map(|at| text(host, path, at)).collect();
                (texts.iter().cloned().map(prefix).collect::<Vec<_>>(), SurtRules { prefixes: texts, urls: vec![path.clone()] })
            });
            let sets: Vec<(Vec<Prefix>, SurtRules)> = sets.collect();
            let mut all: Vec<Prefix> = sets.iter().flat_map(|set| set.0.clone()).collect();
            all.sort_by_key(|prefix| prefix.prefix.clone());
            let mut by_first: Vec<&(Vec<Prefix>, SurtRules)> = sets.iter().collect();
            by_first.sort_by_key(|set| set.0[0].prefix.clone());
            let disk = Disk::new(&std::env::temp_dir(), 0);
            for disk in [None, Some(&disk)] {
                let mut lists = CrawlerLists::on(disk).unwrap();
                lists.fill(|take| sets.iter().rev().cloned().try_for_each(take)).unwrap();
                prop_assert!(lists.prefixes().unwrap() == all);
                prop_assert_eq!(lists.wide, all.iter().filter(|prefix| !prefix.single).count() as u64);
                let rules = lists.surt_rules().unwrap();
                prop_assert!(rules.iter().eq(by_first.iter().map(|set| &set.1)));
            }
        }
    }
}
