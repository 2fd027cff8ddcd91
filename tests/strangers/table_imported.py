# truth: grows <module> 60.0M; a module (this one) makes its table while it is imported, as a list of constants is
# short
if __name__ == "__main__":
    import table_imported

    assert len(table_imported.table) == 15_000
else:
    table = list(map(bytearray, [4_000] * 15_000))
