import java.io.FileReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.archive.util.SURT;
import org.archive.util.SurtPrefixSet;

/** Prints the URLs of a list that Heritrix rejects according to its own SurtPrefixSet: HeritrixSurts SURTS BEANS URLS. */
class HeritrixSurts {
    public static void main(String[] arguments) throws Exception {
        SurtPrefixSet prefixes = new SurtPrefixSet();
        try (FileReader reader = new FileReader(arguments[0])) {
            prefixes.importFromMixed(reader, true);
        }
        List<Pattern> patterns = new ArrayList<>();
        Matcher value = Pattern.compile("<value>(.*)</value>").matcher(Files.readString(Path.of(arguments[1])));
        while (value.find()) {
            String regex = value.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
            patterns.add(Pattern.compile(regex));
        }
        for (String url : Files.readAllLines(Path.of(arguments[2]))) {
            // As SurtPrefixSet.getCandidateSurt, which takes a URI object.
            String candidate = SURT.fromURI(url);
            if (candidate.startsWith("https://")) {
                candidate = "http" + candidate.substring("https".length());
            }
            boolean rejected = prefixes.containsPrefixOf(candidate);
            for (Pattern pattern : patterns) {
                rejected |= pattern.matcher(url).matches();
            }
            if (rejected) {
                System.out.println(url);
            }
        }
    }
}
