//! Explanation of the relation of two pages of a finished run, from its tables and its input alone.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::FinishedRun;
use super::compared::canonical;
use super::decisions::Decisions;
use super::pages::PageTable;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{DocId, HostId, Number, Page, doc_id};
use webtwin_core::chunks::ChunkRecipe;
use webtwin_core::explain::chain::shortest;
use webtwin_core::explain::diff::pieces;
use webtwin_core::explain::evidence::{PairEvidence, needed_chunks};
use webtwin_core::explain::{
    ChainStep, Explanation, HammingEvidence, Knowledge, OverlapEvidence, PageSide, Rival, SharedChunk, TOO_FEW_CHUNKS,
};
use webtwin_core::overlap::FPrintDocId;
use webtwin_core::overlap::filter::ChunkVerdict;
use webtwin_core::overlap::guard::GuardedMatch;
use webtwin_core::overlap::unsupported::has_low_resemblance;
use webtwin_job::{Guard, Job, Measure, MergeCondition};
use webtwin_pages::html::Extractor;
use webtwin_pages::url::CanonicalUrl;
use webtwin_storage::texts::StringTable;

/// Number of unchanged lines that are shown around a change.
pub(super) const CONTEXT: usize = 2;

/// The contents of the tables of a run that concern two pages.
pub struct PagePairTables {
    job: Job,
    pages: PageTable,
    hosts: Vec<HostId>,
    /// Rows of the two pages in the table `pages`.
    rows: [usize; 2],
    /// Pairs in the table `pairs`; `measures` has the measure and value of each pair.
    pairs: Vec<(DocId, DocId)>,
    measures: Vec<(String, u32)>,
    /// Representative of each exact copy.
    centres: HashMap<DocId, DocId>,
    clusters: HashMap<DocId, DocId>,
    sides: [PageSide; 2],
    /// True if the pages are in collections of one similar cluster.
    in_mirrors: bool,
    table: Vec<FPrintDocId>,
    knowledge: Knowledge,
    texts: [String; 2],
    /// True for each page that declares the other as its edition in another language.
    name_editions: [bool; 2],
}

impl PagePairTables {
    /// Reads the tables of a run for two URLs. Chunks of other pages come from the table
    /// `fprint_docid` if the run has it, and otherwise from the whole input (`read_crawl`) or from
    /// the pages of the two hosts.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] for a run without pages. Returns [`Error::Input`] for a URL that is
    /// not a page of the run, with the reason if its record was rejected. Returns any error of
    /// [`PageTable::read`].
    ///
    /// # Cost
    /// Memory for all tables except links, and for the fingerprints of the pages that are read.
    pub fn read(run: &FinishedRun, urls: [&str; 2], read_crawl: bool) -> Result<PagePairTables> {
        if run.manifest.table("pages").next().is_none() {
            let no_pages_message =
                format!("{}: has no table of pages; explain compares pages of `webtwin run`", run.folder);
            return Err(Error::Usage(no_pages_message));
        }
        let (job, pages) = (run.job()?, PageTable::from_run(run)?);
        let hosts = numbered(pages.0.text("host")?);
        let mut rows = [0; 2];
        for (row, url) in rows.iter_mut().zip(urls) {
            let url = canonical("from the command line", url)?;
            *row = pages.row(doc_id(url.as_str()))?.ok_or_else(|| unknown(run, url.as_str()))?;
        }
        let table = run.table("pairs")?;
        let pairs: Vec<(DocId, DocId)> = table.u64("a")?.iter().copied().zip(table.u64("b")?.iter().copied()).collect();
        let measures: Vec<(String, u32)> =
            table.text("measure")?.iter().map(String::from).zip(table.u32("value")?.iter().copied()).collect();
        // In a pair of the measure `exact`, the first page represents the second.
        let exact = pairs.iter().zip(&measures).filter(|(_, (measure, _))| measure == "exact");
        let centres = exact.map(|(&(centre, copy), _)| (copy, centre)).collect();
        let table = run.table("clusters")?;
        let clusters = table.u64("doc_id")?.iter().copied().zip(table.u64("cluster")?.iter().copied()).collect();
        let (sides, texts) = ([PageSide::default(), PageSide::default()], [String::new(), String::new()]);
        let in_mirrors = {
            let doc_ids = pages.doc_ids()?;
            are_in_mirrors(run, rows.map(|row| doc_ids[row]))?
        };
        let (table, knowledge) = (Vec::new(), Knowledge::Crawl);
        let mut tables = PagePairTables {
            job,
            pages,
            hosts,
            rows,
            pairs,
            measures,
            centres,
            clusters,
            sides,
            in_mirrors,
            table,
            knowledge,
            texts,
            name_editions: [false; 2],
        };
        tables.sides = [tables.side(run, rows[0])?, tables.side(run, rows[1])?];
        tables.read_chunks(run, read_crawl)?;
        Ok(tables)
    }

    fn side(&self, run: &FinishedRun, row: usize) -> Result<PageSide> {
        let (urls, page) = (self.pages.urls()?, self.pages.doc_ids()?[row]);
        let cluster = self.clusters.get(&page).map(|&cluster| {
            let pages = self.clusters.values().filter(|of| **of == cluster).count();
            (cluster, pages)
        });
        let copy_of = match self.centres.get(&page) {
            Some(&centre) => self.pages.row(centre)?.map(|row| urls[row].to_string()),
            None => None,
        };
        let (collections, members) = (run.table("collections")?, run.table("members")?);
        let (of, members) = (members.u64("collection")?, members.u64("doc_id")?);
        let own_collections: HashSet<u64> =
            of.iter().zip(members).filter(|row| *row.1 == page).map(|row| *row.0).collect();
        let roots = collections.u64("collection")?.iter().zip(collections.text("root_url")?);
        let collection_roots = roots.filter(|(collection, _)| own_collections.contains(collection));
        let collections = collection_roots
            .map(|(collection, root)| (root.to_string(), of.iter().filter(|of| *of == collection).count()))
            .collect();
        let text_bytes = self.pages.0.u64("text_bytes")?[row];
        Ok(PageSide { url: urls[row].to_string(), doc_id: page, cluster, copy_of, text_bytes, chunks: 0, collections })
    }

    fn read_chunks(&mut self, run: &FinishedRun, read_crawl: bool) -> Result<()> {
        let table = run.table("fprint_docid")?;
        let is_complete = !table.columns.is_empty();
        // The hosts of the representatives are read as well, because the run compared the chunks of
        // the representatives.
        let [a, b] = self.rows.map(|row| self.stands_for(row));
        let mut hosts_asked = self.rows.map(|row| self.hosts[row]).to_vec();
        hosts_asked.extend([self.hosts[a?.index()], self.hosts[b?.index()]]);
        let rows_wanted: Vec<usize> = match (is_complete, read_crawl) {
            (true, _) => self.rows.to_vec(),
            (false, true) => (0..self.hosts.len()).collect(),
            (false, false) => (0..self.hosts.len()).filter(|&row| hosts_asked.contains(&self.hosts[row])).collect(),
        };
        let (mut recipe, mut fprints) = (ChunkRecipe::new(&self.job.chunks), Vec::new());
        let (rows, texts, mut read) = (self.rows, &mut self.texts, Vec::new());
        let (doc_ids, mut extractor) = (self.pages.doc_ids()?, Extractor::new(&self.job.input.limits));
        let name_editions = &mut self.name_editions;
        self.pages.read(&rows_wanted, &self.job.input, &mut |row, page, text| {
            for side in (0..2).filter(|&side| rows[side] == row) {
                texts[side] = text.to_owned();
                // Both pages are extracted again, because no table contains their declared
                // editions.
                if let Ok(url) = CanonicalUrl::parse(&page.url)
                    && let Ok(extracted) = extractor.page(page, &url)?
                {
                    name_editions[side] = extracted.editions.binary_search(&doc_ids[rows[1 - side]]).is_ok();
                }
            }
            recipe.fingerprint(text, &mut fprints);
            read.extend(fprints.iter().map(|&fprint| FPrintDocId::new(fprint, Page::from_index(row))));
            Ok(())
        })?;
        if is_complete {
            let doc_ids = self.pages.doc_ids()?;
            let page = |page: &DocId| Page::from_index(doc_ids.partition_point(|of| of < page));
            let pages = table.u64("doc_id")?;
            read = table.u64("fprint")?.iter().zip(pages).map(|(&f, id)| FPrintDocId::new(f, page(id))).collect();
        }
        self.table = read;
        self.knowledge = if is_complete || read_crawl { Knowledge::Crawl } else { Knowledge::Hosts };
        Ok(())
    }

    /// Derives the explanation from the tables and texts.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if a table lacks a column.
    pub fn explain(&mut self) -> Result<Explanation<'_>> {
        let [a, b] = self.rows.map(|row| self.stands_for(row));
        let (a, b) = (a?, b?);
        let evidence = PairEvidence::new(&mut self.table, &self.hosts, [a, b], &self.job.overlap);
        let overlap = self.overlap(&evidence, [a, b])?;
        let hamming = self.hamming()?;
        let cluster = self.sides[0].cluster.map(|of| of.0);
        let are_together =
            self.rows[0] == self.rows[1] || cluster.is_some() && cluster == self.sides[1].cluster.map(|of| of.0);
        let chain = self.chain(cluster.filter(|_| are_together))?;
        let reasons = match are_together {
            true => vec![format!("joined by {} similar pairs of the run", chain.len())],
            false => self.reasons(&overlap, &hamming)?,
        };
        let recipe = ChunkRecipe::new(&self.job.chunks);
        let (mut chunks_of_a, mut seen_chunks) = (recipe.chunks(&self.texts[0]), HashSet::new());
        chunks_of_a.retain(|(fprint, _)| seen_chunks.insert(*fprint));
        let chunks_of_b: HashSet<u64> = recipe.chunks(&self.texts[1]).into_iter().map(|(fprint, _)| fprint).collect();
        let mut pages = self.sides.clone();
        (pages[0].chunks, pages[1].chunks) = (chunks_of_a.len(), chunks_of_b.len());
        let common_chunks = chunks_of_a.into_iter().filter(|(fprint, _)| chunks_of_b.contains(fprint));
        let shared_chunks = common_chunks.filter_map(|(fprint, text)| {
            let (verdict, pages) = evidence.verdict(fprint)?;
            let verdict = match verdict {
                ChunkVerdict::Counts => "counts",
                ChunkVerdict::Template => "template",
                ChunkVerdict::Frequent => "frequent",
            };
            Some(SharedChunk { text, verdict, pages })
        });
        let shared_chunks = shared_chunks.collect();
        let diff = pieces(&self.texts[0], &self.texts[1], CONTEXT);
        Ok(Explanation { pages, together: are_together, reasons, chain, overlap, hamming, shared_chunks, diff })
    }

    /// Returns the page that represents the page of a row among its exact copies.
    fn stands_for(&self, row: usize) -> Result<Page> {
        let page = self.pages.doc_ids()?[row];
        let centre = self.centres.get(&page).copied().unwrap_or(page);
        Ok(Page::from_index(self.pages.row(centre)?.unwrap_or(row)))
    }

    fn overlap(&self, evidence: &PairEvidence, [a, b]: [Page; 2]) -> Result<OverlapEvidence> {
        let (settings, urls, doc_ids) = (&self.job.overlap, self.pages.urls()?, self.pages.doc_ids()?);
        let better = |page, counterpart| {
            let rivals = Page::first(self.hosts.len()).filter(|&row| !self.centres.contains_key(&doc_ids[row]));
            let matches = evidence.better(page, counterpart, rivals, &self.hosts, settings);
            let rival = |guarded_match: &GuardedMatch| Rival {
                url: urls[guarded_match.to.index()].to_string(),
                shared: guarded_match.shared,
                larger: guarded_match.larger,
            };
            matches.iter().map(rival).collect::<Vec<_>>()
        };
        let chunks = [evidence.chunks(a), evidence.chunks(b)];
        let exact = self.pages.0.u64("exact")?;
        let exact_of = self.rows.map(|row| exact[row]);
        let ids = [doc_ids[a.min(b)], doc_ids[a.max(b)]];
        let mut pairs = self.pairs.iter().zip(&self.measures);
        let pair = pairs.position(|(pair, (measure, _))| [pair.0, pair.1] == ids && measure == "overlap");
        let is_guarded = settings.guard == Guard::MutualBest && a != b;
        Ok(OverlapEvidence {
            used: matches!(self.job.similar.by, Measure::Overlap | Measure::Both),
            exact: exact_of[0] != 0 && exact_of[0] == exact_of[1],
            pair: pair.map(|at| self.measures[at].1),
            shared: evidence.shared(a, b),
            chunks,
            needed: needed_chunks(chunks, settings),
            weak: self.needs_support() && has_low_resemblance(evidence.shared(a, b), chunks[0], chunks[1], settings),
            known: self.knowledge,
            better: if is_guarded { [better(a, b), better(b, a)] } else { [Vec::new(), Vec::new()] },
        })
    }

    /// True if the run requires more of a pair of these pages
    /// ([`webtwin_core::overlap::unsupported`]), provided that both hosts have outgoing links.
    fn needs_support(&self) -> bool {
        let asks = self.job.clusters.merge == MergeCondition::Tolerant && self.job.overlap.guard == Guard::Neighbours;
        asks && !self.in_mirrors && self.hosts[self.rows[0]] != self.hosts[self.rows[1]]
    }

    fn hamming(&self) -> Result<HammingEvidence> {
        let (simhashes, urls) = (self.pages.0.u64_where("simhash", "has_simhash")?, self.pages.urls()?);
        let bit_distance = |x: usize, y: usize| Some((simhashes[x]? ^ simhashes[y]?).count_ones());
        let [a, b] = self.rows;
        let distance = bit_distance(a, b);
        let nearer = |page: usize, counterpart: usize| {
            let on_host =
                (0..self.hosts.len()).filter(|&row| self.hosts[row] == self.hosts[counterpart] && row != page);
            let nearest = on_host.filter_map(|row| Some((bit_distance(page, row)?, row))).min()?;
            distance.filter(|bits| nearest.0 < *bits).map(|_| (urls[nearest.1].to_string(), nearest.0))
        };
        Ok(HammingEvidence {
            used: matches!(self.job.similar.by, Measure::Hamming | Measure::Both),
            distance,
            k: self.job.hamming.k,
            nearer: [nearer(a, b), nearer(b, a)],
        })
    }

    /// Returns a shortest chain of pairs of the run between the two pages, within their cluster.
    fn chain(&self, cluster: Option<DocId>) -> Result<Vec<ChainStep>> {
        let Some(cluster) = cluster else { return Ok(Vec::new()) };
        let is_in_cluster = |page: &DocId| self.clusters.get(page) == Some(&cluster);
        let places: Vec<usize> = (0..self.pairs.len())
            .filter(|&at| is_in_cluster(&self.pairs[at].0) && is_in_cluster(&self.pairs[at].1))
            .collect();
        let edges: Vec<(DocId, DocId)> = places.iter().map(|&at| self.pairs[at]).collect();
        let [page, counterpart] = [self.sides[0].doc_id, self.sides[1].doc_id];
        let path = shortest(&edges, page, counterpart).unwrap_or_default();
        let (urls, mut steps) = (self.pages.urls()?, Vec::new());
        for place in path.into_iter().map(|edge| places[edge]) {
            let (a, b) = self.pairs[place];
            let url = |page| Ok(self.pages.row(page)?.map_or_else(String::new, |row| urls[row].to_string()));
            let (measure, value) = self.measures[place].clone();
            steps.push(ChainStep { pages: [url(a)?, url(b)?], measure, value });
        }
        Ok(steps)
    }

    /// Returns the decision of a person to keep the two pages apart, or the error with which the
    /// decisions of the job cannot be read now.
    fn decision(&self) -> Option<String> {
        let file = &self.job.pairs.apart;
        let decisions = match Decisions::read(&self.job) {
            Ok(decisions) => decisions,
            Err(error) if !file.is_empty() => {
                return Some(format!("the pairs of {file}, which may be the reason, cannot be read: {error}"));
            }
            Err(_) => return None,
        };
        let ids = self.sides.each_ref().map(|side| side.doc_id);
        let is_pair = |doc_ids: &[DocId; 2]| *doc_ids == ids || *doc_ids == [ids[1], ids[0]];
        let decided = decisions.apart.iter().find(|pair| is_pair(&pair.doc_ids))?;
        let because = if decided.reason.is_empty() { String::new() } else { format!(": {}", decided.reason) };
        Some(format!("{file} keeps the two pages apart (pairs.apart){because}"))
    }

    /// Returns the reasons why the pages are in different clusters.
    fn reasons(&self, overlap: &OverlapEvidence, hamming: &HammingEvidence) -> Result<Vec<String>> {
        let mut reasons = Vec::new();
        for side in (0..2).filter(|&side| self.name_editions[side]) {
            let [page, other_url] = [side, 1 - side].map(|side| &self.sides[side].url);
            reasons.push(format!("{page} names {other_url} as its edition in another language (hreflang)"));
        }
        reasons.extend(self.decision());
        // Declared editions and decisions do not exclude other reasons, so they are not counted
        // below. They suffice to keep pages apart that are similar.
        let (n_before, is_kept_apart) = (reasons.len(), !reasons.is_empty());
        for side in self.sides.iter().filter(|side| side.text_bytes < u64::from(self.job.chunks.min_text).max(1)) {
            reasons.push(format!(
                "{} has {} bytes of text, fewer than chunks.min_text ({}): only pages with the same HTML are its copies",
                side.url, side.text_bytes, self.job.chunks.min_text
            ));
        }
        let settings = &self.job.overlap;
        // A page with too little text takes no part in the comparison of chunks, so that comparison
        // cannot be the reason.
        if overlap.used && reasons.len() == n_before {
            let suffices = overlap.needed.is_some_and(|needed| overlap.shared >= needed);
            if !suffices {
                reasons.push(format!(
                    "they share {} chunks that count, of {} and {}; {} by overlap.min_shared {}, min_resemblance {}, doubt {}",
                    overlap.shared,
                    overlap.chunks[0],
                    overlap.chunks[1],
                    overlap.needed.map_or(TOO_FEW_CHUNKS.into(), |needed| format!("{needed} are needed")),
                    settings.min_shared,
                    settings.min_resemblance,
                    settings.doubt
                ));
            }
            // The guard only matters for pages that are similar.
            for (side, better) in self.sides.iter().zip(&overlap.better).filter(|_| suffices) {
                if let Some(Rival { url, shared: n_shared, larger }) = better.first() {
                    reasons.push(format!( "similar, but refused by the guard: {} resembles {url} more, with {n_shared} shared of {larger} \
                         chunks",
                        side.url
                    ));
                }
            }
            if suffices && overlap.weak {
                reasons.push(format!(
                    "similar, but not in mirrored collections, and {} shared chunks of {} and {} are too few by \
                     overlap.min_resemblance_alone {}, which does not apply if one of the hosts has no links",
                    overlap.shared, overlap.chunks[0], overlap.chunks[1], settings.min_resemblance_alone
                ));
            } else if suffices && !is_kept_apart && overlap.better.iter().all(Vec::is_empty) {
                reasons.push(match (settings.guard, self.knowledge) {
                    (Guard::Centre, _) => "similar, but each joined another centre (guard `centre`)".into(),
                    (Guard::Neighbours, knowledge) => {
                        let unless = match knowledge {
                            Knowledge::Hosts => {
                                ", unless chunks that count here are boilerplate elsewhere, which --read-crawl checks"
                            }
                            _ => "",
                        };
                        let decided = match self.job.pairs.apart.as_str() {
                            "" => String::new(),
                            file => format!(", or pairs of {file} that keep other pages of their clusters apart"),
                        };
                        format!(
                            "similar, but the guard `neighbours` kept their clusters apart, because together they would \
                             have pages of one host with the same links there{decided}{unless}"
                        )
                    }
                    (_, Knowledge::Hosts) => {
                        "similar by the pages of the two hosts; chunks that count here may be boilerplate or too \
                         frequent elsewhere, which --read-crawl checks"
                            .into()
                    }
                    _ => "similar, and neither has a better match among the pages that were read".into(),
                });
            }
        }
        if !overlap.used && !hamming.used {
            reasons.push("the run made its pairs by another measure (similar.by), which did not find this pair".into());
        }
        if hamming.used {
            match hamming.distance {
                None => reasons.push("at least one page has no simhash, because it has too few features".into()),
                Some(bits) if bits > hamming.k => {
                    reasons.push(format!("their simhashes differ in {bits} bits, more than hamming.k ({})", hamming.k));
                }
                Some(bits) => {
                    for (side, nearer) in self.sides.iter().zip(&hamming.nearer) {
                        if let Some((url, nearer)) = nearer {
                            reasons.push(format!("{} is nearer to {url}: {nearer} bits, not {bits}", side.url));
                        }
                    }
                }
            }
        }
        Ok(reasons)
    }
}

/// True if two pages are in collections of one similar cluster.
fn are_in_mirrors(run: &FinishedRun, [a, b]: [DocId; 2]) -> Result<bool> {
    let members = run.table("members")?;
    let (of, pages) = (members.u64("similar_cluster")?, members.u64("doc_id")?);
    let clusters = |page| of.iter().zip(pages).filter(move |row| *row.1 == page).map(|row| *row.0);
    let clusters_of_a: HashSet<u64> = clusters(a).collect();
    Ok(clusters(b).any(|cluster| clusters_of_a.contains(&cluster)))
}

/// Numbers hosts from 0. Equal names get the same number.
fn numbered(hosts: &StringTable) -> Vec<HostId> {
    let mut numbers: BTreeMap<&str, HostId> = BTreeMap::new();
    let number = |host| {
        let next = HostId::from_index(numbers.len());
        *numbers.entry(host).or_insert(next)
    };
    hosts.iter().map(number).collect()
}

/// Makes the error for a URL that is not a page of the run.
pub(super) fn unknown(run: &FinishedRun, url: &str) -> Error {
    let rejection = || -> Result<Option<String>> {
        let table = run.table("rejected")?;
        let rows = table
            .text("detail")?
            .iter()
            .position(|detail| detail.split_whitespace().any(|word| word.trim_end_matches([',', ';', ':']) == url));
        let Some(row) = rows else { return Ok(None) };
        let (reason, source) = (&table.text("reason")?[row], &table.text("source")?[row]);
        Ok(Some(format!("its record was rejected: {reason}, {source} at offset {}", table.u64("offset")?[row])))
    };
    let why =
        rejection().ok().flatten().unwrap_or_else(|| "no rejected record names it either, so check the URL".into());
    Error::input(run.folder.name(), format!("{url} is not a page of this run; {why}"))
}
