-- wrk: POST /v1/pages.txt with 1,000 random URLs per request. URLS is the file of URLs.
local batches, some = {}, {}
for line in io.lines(os.getenv("URLS")) do
  some[#some + 1] = line
  if #some == 1000 then
    batches[#batches + 1] = table.concat(some, "\n") .. "\n"
    some = {}
  end
end
local at = 0
function request()
  at = at % #batches + 1
  return wrk.format("POST", nil, { ["Content-Type"] = "text/plain" }, batches[at])
end
