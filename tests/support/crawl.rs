use webtwin::dataflow::pairs::exact;
use webtwin::dataflow::reading::capture::Capture;
use webtwin::dataflow::reading::captures::Crawl;
use webtwin::dataflow::reading::shingle_sets::ShingleSets;
use webtwin::dataflow::reading::worker_pages::WorkerPages;
use webtwin::engine::Net;
use webtwin::error::Result;
use webtwin::ids::{doc_id, splitmix64};
use webtwin::overlap::SimilarPair;
use webtwin::spill::{MemoryPool, SpillColumn};
use webtwin::text::Feature;
use webtwin::text::language::Language;

/// A page of a made-up crawl, given by the numbers of its chunks.
#[derive(Debug, Clone)]
pub(crate) struct MadePage {
    pub(crate) url: String,
    pub(crate) title: String,
    pub(crate) notice: u64,
    /// URL that the page names as canonical; empty for none.
    pub(crate) canonical: String,
    pub(crate) time: i64,
    pub(crate) fprints: Vec<u64>,
    pub(crate) simhash: Option<u64>,
    /// URLs that the page links to.
    pub(crate) links: Vec<String>,
}

impl MadePage {
    /// Returns an empty page, fetched at time 0.
    pub(crate) fn at(url: String) -> MadePage {
        MadePage {
            url,
            title: String::new(),
            notice: 0,
            canonical: String::new(),
            time: 0,
            fprints: Vec::new(),
            simhash: None,
            links: Vec::new(),
        }
    }

    pub(crate) fn chunks(self, fprints: impl IntoIterator<Item = u64>) -> MadePage {
        MadePage { fprints: fprints.into_iter().collect(), ..self }
    }

    pub(crate) fn links(self, urls: impl IntoIterator<Item = String>) -> MadePage {
        MadePage { links: urls.into_iter().collect(), ..self }
    }

    /// Returns the features of the page: one for each chunk, with a weight that grows with the
    /// number of the chunk.
    pub(crate) fn features(&self) -> Vec<Feature> {
        let feature_of = |&fprint: &u64| Feature { hash: splitmix64(fprint), weight: 16 * fprint as u32 };
        let mut features: Vec<Feature> = self.fprints.iter().map(feature_of).collect();
        features.sort_unstable();
        features.dedup();
        features
    }

    /// Returns the set of shingles of the page: one for each chunk.
    fn shingles(&self) -> Vec<u32> {
        let mut shingles: Vec<u32> = self.fprints.iter().map(|&fprint| splitmix64(fprint) as u32).collect();
        shingles.sort_unstable();
        shingles.dedup();
        shingles
    }

    /// Returns a replacement for the page's projection: two small sums of its chunks, or an empty
    /// vector for fewer than two chunks.
    fn projected(&self) -> Vec<i64> {
        let sum = |modulus: u64| self.fprints.iter().map(|fprint| (fprint % modulus) as i64).sum();
        if self.fprints.len() < 2 { Vec::new() } else { vec![sum(5), sum(7)] }
    }
}

/// Puts every `peers`-th page into the local pages of worker `me`. The offset of a page is its
/// number.
pub(crate) fn local_pages(pages: &[MadePage], me: usize, peers: usize) -> WorkerPages {
    let mut sets = ShingleSets::new(&MemoryPool::default());
    let mut local_pages = WorkerPages::default();
    for (number, page) in pages.iter().enumerate().filter(|(number, _)| number % peers == me) {
        let mut fprints = page.fprints.clone();
        fprints.sort_unstable();
        fprints.dedup();
        let exact = fprints.iter().fold(u64::from(!fprints.is_empty()), |hash, &fprint| splitmix64(hash ^ fprint));
        let capture = Capture {
            doc_id: doc_id(&page.url),
            url: page.url.clone(),
            fetch_time: page.time,
            status: 200,
            mime: "text/html".into(),
            title: page.title.clone().into(),
            language: Language::UNKNOWN,
            body_bytes: 100,
            body: 0,
            text_bytes: 50,
            chunks: fprints.len() as u32,
            exact,
            simhash: page.simhash,
            projected: page.projected(),
            source: 0,
            item: 0,
            offset: number as u64,
            length: 1,
            repaired: Vec::new(),
            worker: me as u32,
            slot: local_pages.exact.len() as u32,
            original: None,
            segments: Vec::new(),
            is_conversion: false,
            record: 0,
            variant: 0,
            notice: page.notice,
            canonical: if page.canonical.is_empty() { 0 } else { doc_id(&page.canonical) },
        };
        local_pages.captures.push(&capture).unwrap();
        local_pages.exact.push(exact);
        local_pages.fprints.push(&fprints).unwrap();
        local_pages.features.push(&page.features()).unwrap();
        sets.push(&page.shingles()).unwrap();
        local_pages.links.push(&page.links.iter().map(|url| doc_id(url)).collect::<Vec<_>>()).unwrap();
    }
    local_pages.sets = Some(sets);
    local_pages
}

/// Returns the pairs (centre, copy) of the exact copies in a crawl. Each pair is on one of the
/// workers.
pub(crate) fn exact_pairs(net: &mut Net<'_>, crawl: &Crawl) -> Result<SpillColumn<SimilarPair>> {
    let texts = crawl.pages.map(|row| (row.exact, row.page));
    exact::fold(net, texts, crawl.pages.len() as u64)
}
