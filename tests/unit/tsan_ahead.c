/* The same under ThreadSanitizer, with all of the reader: who decodes ahead and who reads share nothing unguarded. */
#include "tests/unit/test_ahead.c"
