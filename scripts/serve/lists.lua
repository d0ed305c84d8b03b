-- wrk: GET /v1/sets with the words of random URLs, one question a request, every third of frequent words alone. URLS names the file.
local questions = {}
for line in io.lines(os.getenv("URLS")) do
  local words = line:gsub("[^%w]+", "+")
  if #questions % 3 == 2 then words = "http+www+example+html" end
  questions[#questions + 1] = "/v1/sets?q=" .. words
end
local at = 0
function request()
  at = at % #questions + 1
  return wrk.format("GET", questions[at])
end
