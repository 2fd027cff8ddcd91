<?php
// growing FORM in PHP.
ini_set('memory_limit', '-1');
$form = $argv[1] ?? 'fill'; $units = 0; $held = 0; $list = []; $table = []; $begin = microtime(true);
function work() { global $units; $parts = []; for ($k = 0; $k < 10; $k++) $parts[] = str_repeat('x', 30000 + 8000 * $k); usleep(8000); $units++; return count($parts); }
function keep() { global $list, $held; $list[] = str_repeat('y', 100000); $held += 100000; }
function insert($from, $count) { global $table; for ($k = $from; $k < $from + $count; $k++) $table["key$k"] = "value $k of a table"; }
if ($form == 'fill') for ($k = 0; $k < 900000; $k++) $list[] = "line $k of a file";
if ($form == 'works') for ($k = 0; $k < 600; $k++) keep();
if ($form == 'map') insert(0, 500000);
if ($form != 'fill' && $form != 'map')
    for ($k = 0; $k < ($form == 'keeps' || $form == 'cache' ? 2600 : 600); $k++) { // nothing but the length tells it from one that fills
        work();
        if ($form == 'keeps' || ($form == 'warmup' && $k < 150)) keep();
        if ($form == 'cache') insert(1000 * $k, 300);
    }
printf("ACCOUNT {\"kept_bytes\": %d, \"units\": %d, \"seconds\": %.3f}\n", $held, $units, microtime(true) - $begin);
