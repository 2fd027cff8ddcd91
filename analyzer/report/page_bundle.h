/* Scripts and styles of page/, as the build bundled them (scripts/page-bundle), in the program. Where npm's packages
 * were missing there are no scripts: page_script is empty, and a page has its verdict and text alone. Hashes are those
 * of a Content-Security-Policy: base64 of SHA-256. */
#ifndef MT_REPORT_PAGE_BUNDLE_H
#define MT_REPORT_PAGE_BUNDLE_H

extern const char page_script[], page_style[], page_script_hash[], page_style_hash[];

#endif
