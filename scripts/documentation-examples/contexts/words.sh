# The file that the page publishes line by line.
printf 'one\ntwo\n' >words
