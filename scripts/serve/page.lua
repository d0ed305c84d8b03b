-- wrk: GET /v1/page of random URLs, one per request. URLS is the file of URLs.
local urls = {}
for line in io.lines(os.getenv("URLS")) do
  urls[#urls + 1] = "/v1/page?url=" .. line
end
local at = 0
function request()
  at = at % #urls + 1
  return wrk.format("GET", urls[at])
end
